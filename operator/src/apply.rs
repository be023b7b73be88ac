//! Server-side apply that sends a request only where something would change, and never takes over an object of another
//! owner.
//!
//! The operator makes no requests when the cluster is quiet (docs/explanation/design.md, section 7), so the wanted
//! object is compared with the watch cache first ([`subset`]). The API server may rewrite a value in a way that the
//! comparison does not recognize. Therefore the applier remembers the response to each apply, and sends the same apply
//! again only after the object or the wanted state has changed.

mod creation_locks;
mod exclusive;
mod known_object;
pub mod quantity;
mod repairs;
mod subset;
mod write_history;

pub use known_object::KnownObject;

use crate::error::Error;
use crate::metrics::Metrics;
use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::names::{ANNOTATION_APPLIED, MANAGER};
use creation_locks::CreationLocks;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{Resource, ResourceExt};
use kube::{Api, Client};
use repairs::Repairs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;
use write_history::WriteHistory;

/// The text in the API server's refusal of an apply that would leave two items with the same key in a list, for example
/// because another writer renumbered a port. An apply cannot remove the other writer's item, so the object is deleted
/// and created again.
const DUPLICATE_VALUE: &str = "Duplicate value";

/// A resource version that no object has. An apply with it creates the object, or fails with a conflict if the object
/// exists. A plain apply would take over an object that was created after the read. A POST would record its fields
/// under the operation `Update` instead of `Apply`, and no later apply could remove them.
const CREATE_ONLY_VERSION: &str = "1";

/// An object that can be applied: any namespaced type that is known at compile time.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// Writes objects where something would change.
pub struct Applier {
    client: Client,
    metrics: Arc<Metrics>,
    history: WriteHistory,
    repairs: Repairs,
    /// Serializes [`Applier::create_unowned`] in each namespace.
    creation_locks: CreationLocks,
}

/// The result of applying an object.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyResult<K> {
    /// The object had the wanted state already. Nothing was written, so the cached copy is current.
    Unchanged,
    /// The object was written. Holds the answer of the API server.
    Written(Box<K>),
    /// The object was written a moment ago, and the cache does not show the write yet.
    CacheBehind,
    /// An object of that name is being deleted. Its deletion wakes the controller.
    BeingDeleted,
    /// An object of that name has another owner. It is left unchanged.
    NameTaken,
    /// The object was created again by another writer, with other content, and is immutable. It is left unchanged.
    Replaced,
    /// The API server refused the object, with this message.
    Refused(String),
    /// The object has the wanted state except at these paths, which another writer, such as an admission webhook, sets back
    /// each time. It is left as it is until it or the wanted state changes.
    Reverted(Vec<String>),
}

impl Applier {
    /// Creates an applier.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            metrics,
            history: WriteHistory::default(),
            repairs: Repairs::default(),
            creation_locks: CreationLocks::default(),
        }
    }

    /// Applies `wanted`, which must have a controlling owner, if it differs from the `known` state.
    ///
    /// An object that is not in the cache is read from the API server first, so that the applier never takes over an
    /// object of another owner. Values that others changed are set back; fields that others added stay, except in the
    /// [`exclusive`] parts of the object.
    ///
    /// # Errors
    /// Returns a conflict if another writer was faster, and any other error that may be temporary.
    pub async fn apply<K: Object>(&self, wanted: &K, known: Option<KnownObject>) -> Result<ApplyResult<K>, Error> {
        self.apply_to(&Target::new(wanted)?, wanted, known).await
    }

    /// Applies `wanted`, which has no owner and belongs to all Skills of its namespace, as [`Applier::apply`] does. An existing object
    /// must have the operator's label and no owner.
    ///
    /// # Errors
    /// As [`Applier::apply`].
    pub async fn apply_unowned<K: Object>(
        &self,
        wanted: &K,
        known: Option<KnownObject>,
    ) -> Result<ApplyResult<K>, Error> {
        let target = Target::unowned(wanted);
        if known.is_some() {
            return self.apply_to(&target, wanted, known).await;
        }
        // Several Skills of a new tenant find at once that the object is missing.
        let lock = self.creation_locks.lock_of(&target.namespace);
        let _guard = lock.lock().await;
        self.apply_to(&target, wanted, None).await
    }

    async fn apply_to<K: Object>(
        &self,
        target: &Target,
        wanted: &K,
        known: Option<KnownObject>,
    ) -> Result<ApplyResult<K>, Error> {
        // Cached metadata is enough only if this process has compared the whole object before.
        let known =
            known.filter(|known| !known.metadata_only || self.history.has_answer(known.metadata.uid.as_deref()));
        let known = match known {
            Some(known) => Some(known),
            None => self.fetch::<K>(target).await?,
        };
        let mut body = json(wanted, &target.what)?;
        add_digest(&mut body);
        let Some(known) = known else {
            add_precondition(&mut body, "resourceVersion", CREATE_ONLY_VERSION);
            return self.send(target, &body, /* force */ false, /* is_applied */ true).await;
        };
        if let Some(obstacle) = target.obstacle(&known.metadata) {
            return Ok(obstacle);
        }
        let Some(uid) = known.metadata.uid.clone() else {
            return Err(Error::Incomplete { what: target.what.clone(), field: "metadata.uid" });
        };
        if self.history.is_older(&uid, known.metadata.resource_version.as_deref()) {
            return Ok(ApplyResult::CacheBehind);
        }
        // The next apply removes what the operator itself applied before and does not want any more.
        let is_applied = known.was_applied(&body);
        let additions = is_applied.then(|| exclusive::additions(&K::kind(&()), &body, &known.value)).flatten();
        let is_cache_behind = additions.is_some();
        let known = match additions {
            None => known,
            Some(additions) => match self.remove(additions, target, known).await? {
                Ok(known) => known,
                Err(refused) => return Ok(refused),
            },
        };
        if known.satisfies(&body) || self.history.is_answer(&uid, &body, &known.value) {
            let result = if is_cache_behind { ApplyResult::CacheBehind } else { ApplyResult::Unchanged };
            let result = unless_reverted(result, &body, &known.value);
            if known.is_immutable() || is_cache_behind {
                // Later applies of an immutable object then need only the cached metadata.
                self.history.remember(&known.metadata, &body, known.value);
            }
            return Ok(result);
        }
        if known.is_immutable() && !known.contains_data_of(&body) {
            return Ok(ApplyResult::Replaced);
        }
        // With the UID, the apply fails if the object was deleted and created again in between.
        add_precondition(&mut body, "uid", &uid);
        let result = self.send(target, &body, /* force */ true, is_applied).await?;
        let ApplyResult::Refused(why) = &result else { return Ok(result) };
        // The API server accepted the wanted state before, or this is a Service, which has one wanted port. So another writer added the
        // duplicate.
        if why.contains(DUPLICATE_VALUE) && (is_applied || K::kind(&()) == "Service") {
            self.delete::<K>(&known.metadata).await?;
            return Ok(ApplyResult::BeingDeleted);
        }
        // An addition of another writer may be what makes a new wanted state invalid. Its removal wakes the controller.
        let additions = exclusive::additions(&K::kind(&()), &body, &known.value).filter(|_| !is_applied);
        let Some(additions) = additions else { return Ok(result) };
        let version = known.metadata.resource_version.clone();
        Ok(match self.remove::<K>(additions, target, known).await? {
            Ok(after) if after.metadata.resource_version != version => ApplyResult::CacheBehind,
            Ok(_) | Err(_) => result,
        })
    }

    /// Creates `wanted`, which has no owner, unless an object of that name exists. An existing object is left
    /// unchanged.
    pub async fn create_unowned<K: Object>(&self, wanted: &K) -> Result<ApplyResult<K>, Error> {
        let what = format!("{} {}/{}", K::kind(&()), wanted.namespace().unwrap_or_default(), wanted.name_any());
        let api: Api<K> = self.api(&wanted.namespace().unwrap_or_default());
        // One creation at a time in a namespace: several Skills of a new tenant find at once that its memory claim is
        // missing.
        let lock = self.creation_locks.lock_of(&wanted.namespace().unwrap_or_default());
        let _guard = lock.lock().await;
        let existing = api.get_opt(&wanted.name_any()).await.map_err(Error::api(format!("read {what}")))?;
        if existing.is_some() {
            return Ok(ApplyResult::Unchanged);
        }
        self.metrics.count_write(&K::kind(&()), "create");
        match api.create(&owned::post_params(), wanted).await.map_err(Error::api(format!("create {what}"))) {
            Ok(created) => Ok(ApplyResult::Written(Box::new(created))),
            Err(error) if error.is_conflict() => Ok(ApplyResult::Unchanged),
            Err(error) => refusal_or_error(error),
        }
    }

    /// Deletes the object with this name and UID, unless its deletion was requested already.
    pub async fn delete<K: Object>(&self, metadata: &ObjectMeta) -> Result<(), Error> {
        self.delete_with_grace::<K>(metadata, None).await
    }

    /// Deletes the object with this name and UID, unless its deletion was requested already. Without `grace_seconds`, the
    /// object's own grace period applies.
    pub async fn delete_with_grace<K: Object>(
        &self,
        metadata: &ObjectMeta,
        grace_seconds: Option<u32>,
    ) -> Result<(), Error> {
        let (Some(namespace), Some(name), Some(uid)) = (&metadata.namespace, &metadata.name, &metadata.uid) else {
            return Ok(());
        };
        if metadata.deletion_timestamp.is_some() || !self.history.record_deletion(uid) {
            return Ok(());
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
            grace_period_seconds: grace_seconds,
            ..DeleteParams::background()
        };
        self.metrics.count_write(&K::kind(&()), "delete");
        let what = format!("delete {} {namespace}/{name}", K::kind(&()));
        match self.api::<K>(namespace).delete(name, &parameters).await.map_err(Error::api(what)) {
            Ok(_) => Ok(()),
            // The object is gone, or another object has its name.
            Err(error) if error.is_gone() || error.is_conflict() => Ok(()),
            Err(error) => {
                self.history.forget(uid);
                Err(error)
            }
        }
    }

    /// Deletes an object if it is unchanged since it was read. If it has changed, the change wakes the controllers that
    /// depend on it.
    pub async fn delete_if_unchanged<K: Object>(&self, object: &K) -> Result<(), Error> {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        self.metrics.count_write(&K::kind(&()), "delete");
        let what = format!("delete {} {namespace}/{name}", K::kind(&()));
        match self.api::<K>(&namespace).delete(&name, &parameters).await.map_err(Error::api(what)) {
            Ok(_) => Ok(()),
            Err(error) if error.is_gone() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn fetch<K: Object>(&self, target: &Target) -> Result<Option<KnownObject>, Error> {
        let stored = self.api::<K>(&target.namespace).get_opt(&target.name).await;
        let stored = stored.map_err(Error::api(format!("read {}", target.what)))?;
        Ok(stored.as_ref().and_then(KnownObject::full))
    }

    /// Removes what other writers added to the exclusive parts of a known object. Returns the object without it, or the result
    /// if the API server refuses the removal. Returns the object unchanged if the same additions were removed often enough
    /// ([`Repairs`]).
    ///
    /// # Errors
    /// Returns a conflict if the object has changed since it was read.
    async fn remove<K: Object>(
        &self,
        additions: exclusive::Additions,
        target: &Target,
        known: KnownObject,
    ) -> Result<Result<KnownObject, ApplyResult<K>>, Error> {
        let exclusive::Additions { mut patch, paths } = additions;
        let (Some(uid), Some(version)) = (&known.metadata.uid, &known.metadata.resource_version) else {
            return Ok(Ok(known));
        };
        let digest = Digest::of_value(&patch);
        if !self.repairs.may_try(uid, &digest, Instant::now()) {
            return Ok(Ok(known));
        }
        tracing::info!(object = target.what, ?paths, "removing what another writer added");
        if let Some(patch) = patch.as_object_mut() {
            patch.insert("metadata".to_owned(), Value::Object(serde_json::Map::new()));
        }
        add_precondition(&mut patch, "uid", uid);
        add_precondition(&mut patch, "resourceVersion", version);
        self.metrics.count_write(&K::kind(&()), "patch");
        let api = self.api::<K>(&target.namespace);
        let answer = api.patch(&target.name, &owned::patch_params(), &Patch::Strategic(&patch)).await;
        match answer.map_err(Error::api(format!("patch {}", target.what))) {
            Ok(answer) => {
                // A conflict is no removal: the cached object was old.
                self.repairs.record(uid, digest, Instant::now());
                let value = json(&answer, &target.what)?;
                Ok(Ok(KnownObject { metadata: answer.meta().clone(), value, metadata_only: false }))
            }
            Err(error) => refusal_or_error(error).map(Err),
        }
    }

    /// Sends an apply. `is_applied` says that the wanted state was applied before, or that the object is new: what the answer has
    /// otherwise, another writer sets back. After a change of the wanted state, it may also be an addition that is not removed yet.
    async fn send<K: Object>(
        &self,
        target: &Target,
        body: &Value,
        force: bool,
        is_applied: bool,
    ) -> Result<ApplyResult<K>, Error> {
        let parameters = PatchParams { force, ..PatchParams::apply(MANAGER) };
        self.metrics.count_write(&K::kind(&()), "apply");
        let answer = self.api::<K>(&target.namespace).patch(&target.name, &parameters, &Patch::Apply(body)).await;
        match answer.map_err(Error::api(format!("apply {}", target.what))) {
            Ok(answer) => {
                let value = json(&answer, &target.what)?;
                let metadata = answer.meta().clone();
                let result = ApplyResult::Written(Box::new(answer));
                let result = if is_applied { unless_reverted(result, body, &value) } else { result };
                self.history.remember(&metadata, body, value);
                Ok(result)
            }
            Err(error) => refusal_or_error(error),
        }
    }

    fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// The object to write, and its owner.
struct Target {
    namespace: String,
    name: String,
    /// The kind, namespace and name, for messages.
    what: String,
    /// None for an object that belongs to all Skills of its namespace.
    owner: Option<Owner>,
}

/// The controlling owner of an object.
struct Owner {
    uid: String,
    name: String,
}

impl Target {
    fn new<K: Object>(wanted: &K) -> Result<Self, Error> {
        let target = Self::unowned(wanted);
        let owner = wanted.owner_references().iter().find(|owner| owner.controller == Some(true));
        match owner {
            Some(owner) => {
                Ok(Self { owner: Some(Owner { uid: owner.uid.clone(), name: owner.name.clone() }), ..target })
            }
            None => Err(Error::Unowned { what: target.what }),
        }
    }

    fn unowned<K: Object>(wanted: &K) -> Self {
        let namespace = wanted.namespace().unwrap_or_default();
        let name = wanted.name_any();
        let what = format!("{} {namespace}/{name}", K::kind(&()));
        Self { namespace, name, what, owner: None }
    }

    /// Returns the result for an existing object that must not be written; none if it may be written.
    fn obstacle<K>(&self, existing: &ObjectMeta) -> Option<ApplyResult<K>> {
        let is_own = match &self.owner {
            Some(owner) => owned::is_owned_by(existing, &owner.uid),
            None => owned::is_managed(existing) && existing.owner_references.iter().flatten().next().is_none(),
        };
        if is_own {
            return existing.deletion_timestamp.is_some().then_some(ApplyResult::BeingDeleted);
        }
        // The object of an earlier owner of the same name: Kubernetes deletes it, because that owner was deleted.
        let is_of_deleted_owner = self.owner.as_ref().is_some_and(|wanted| {
            let mut owners = existing.owner_references.iter().flatten();
            owners.any(|owner| owner.name == wanted.name && owner.uid != wanted.uid)
        });
        if owned::is_managed(existing) && is_of_deleted_owner {
            Some(ApplyResult::BeingDeleted)
        } else {
            Some(ApplyResult::NameTaken)
        }
    }
}

/// Adds the digest of the wanted object as an annotation. If the operator no longer wants a field, the wanted object is
/// a subset of the stored one, so only the digest shows the difference.
fn add_digest(body: &mut Value) {
    let digest = Digest::of_value(body);
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(ANNOTATION_APPLIED.to_owned(), Value::String(digest.short(16).to_owned()));
    }
}

/// Adds a precondition: the apply fails unless the stored metadata has this value.
fn add_precondition(body: &mut Value, field: &str, value: &str) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(field.to_owned(), Value::String(value.to_owned()));
    }
}

/// Returns the result, or the paths at which the object still differs in its exclusive parts.
fn unless_reverted<K: Object>(result: ApplyResult<K>, wanted: &Value, live: &Value) -> ApplyResult<K> {
    let paths = exclusive::differences(&K::kind(&()), wanted, live);
    if paths.is_empty() { result } else { ApplyResult::Reverted(paths) }
}

/// Returns a result for a refusal that depends on the object, its namespace or an admission webhook, and an error for a failure that may
/// be temporary.
fn refusal_or_error<K>(error: Error) -> Result<ApplyResult<K>, Error> {
    match error.refusal().or_else(|| unreadable(&error)) {
        Some(why) => Ok(ApplyResult::Refused(why.to_owned())),
        None => Err(error),
    }
}

/// Returns the message if the API server cannot read an applied object. Server-side apply answers 500 then.
fn unreadable(error: &Error) -> Option<&str> {
    let Error::Api { source: kube::Error::Api(status), .. } = error else { return None };
    let beginnings = ["failed to convert new object", "failed to create typed patch object"];
    let is_unreadable = status.code == 500 && beginnings.iter().any(|beginning| status.message.starts_with(beginning));
    is_unreadable.then_some(status.message.as_str())
}

fn json<K: Serialize>(object: &K, what: &str) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|source| Error::Json { what: what.to_owned(), source })
}

#[cfg(test)]
mod tests;
