//! Server-side apply that asks only where something would change, and never takes an object over.
//!
//! Every request counts, those that change nothing too (`docs/explanation/design.md`, section 7: none when quiet). So what is
//! wanted is compared with the watch cache first ([`subset`]). Where the API server rewrites a value in a way
//! that the comparison does not know, the answer to the apply is remembered: it is not sent again until
//! somebody changes the object or wants something else.

mod memory;
pub mod quantity;
mod subset;

use crate::error::Error;
use crate::metrics::Metrics;
use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::names::{ANNOTATION_APPLIED, MANAGER};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{PartialObjectMeta, Resource, ResourceExt, Status};
use kube::{Api, Client};
use memory::Memory;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;

/// What the API server says where a list holds an item that somebody renumbered beside the one that is wanted:
/// a port, say. Apply cannot take another one's item away, so the object is made anew.
const IN_THE_WAY: &str = "Duplicate value";

/// A version that no object has: applied with it, an object is made, or refused as a conflict where there is one.
/// A plain apply would take over what somebody else made since it was asked for; and a create would count as an
/// update of ours, whose fields no later apply can remove.
const NEW: &str = "1";

/// What can be applied: any namespaced object that is known at compile time.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// Writes objects, where something would change.
pub struct Applier {
    client: Client,
    metrics: Arc<Metrics>,
    memory: Memory,
    creating: tokio::sync::Mutex<()>,
}

/// What became of an object that was to be applied.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied<K> {
    /// It stands as it should, and stood so before: what the cache has of it is true.
    Stands,
    /// It was written; this is what the API server made of it.
    Written(Box<K>),
    /// It was written a moment ago, and the cache does not show that yet.
    Settling,
    /// One of the same name is on its way out; its end wakes the controller.
    Leaving,
    /// Somebody else has an object of that name. It is left as it is.
    NameTaken,
    /// Somebody has made it anew with other content, which nobody can change any more. It is left as it is.
    Replaced,
    /// The API server refused it, for this reason.
    Refused(String),
}

/// What the cache knows of an object.
pub struct Known {
    metadata: ObjectMeta,
    whole: Value,
    metadata_only: bool,
}

impl Known {
    /// A cached object.
    pub fn whole<K: Resource + Serialize>(object: &K) -> Option<Self> {
        let whole = serde_json::to_value(object).ok()?;
        Some(Self { metadata: object.meta().clone(), whole, metadata_only: false })
    }

    /// The cached metadata of an object whose content cannot change: the rest is asked for once.
    pub fn metadata<K>(object: &PartialObjectMeta<K>) -> Option<Self>
    where
        PartialObjectMeta<K>: Serialize,
    {
        let whole = serde_json::to_value(object).ok()?;
        Some(Self { metadata: object.metadata.clone(), whole, metadata_only: true })
    }
}

impl Applier {
    /// Makes an applier.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics, memory: Memory::default(), creating: tokio::sync::Mutex::default() }
    }

    /// Applies `wanted`, which must name its controlling owner, where it differs from what is `known` of it.
    ///
    /// An object that the cache does not know is asked for first: an object of somebody else is never taken
    /// over. Values that others changed are set back; fields that others added stay.
    ///
    /// # Errors
    /// A conflict where somebody else wrote at the same time; anything else that may pass by itself.
    pub async fn apply<K: Object>(&self, wanted: &K, known: Option<Known>) -> Result<Applied<K>, Error> {
        let target = Target::new(wanted)?;
        let known = known.filter(|known| !known.metadata_only || self.memory.knows(known.metadata.uid.as_deref()));
        let known = match known {
            Some(known) => Some(known),
            None => self.ask::<K>(&target).await?,
        };
        let mut body = json(wanted, &target.what)?;
        sign(&mut body);
        let Some(known) = known else {
            demand(&mut body, "resourceVersion", NEW);
            return self.send(&target, &body, /* force */ false).await;
        };
        if let Some(verdict) = target.claim(&known.metadata) {
            return Ok(verdict);
        }
        let Some(uid) = known.metadata.uid.clone() else {
            return Err(Error::Incomplete { what: target.what, field: "metadata.uid" });
        };
        if self.memory.is_older(&uid, known.metadata.resource_version.as_deref()) {
            return Ok(Applied::Settling);
        }
        if known.stands(&body) || self.memory.is_answer(&uid, &body, &known.whole) {
            if known.is_frozen() {
                // It was asked for, which it need not be again.
                self.memory.remember(&known.metadata, &body, known.whole);
            }
            return Ok(Applied::Stands);
        }
        if known.is_frozen() && !known.has_data_of(&body) {
            return Ok(Applied::Replaced);
        }
        // Fails where the object was made anew in between, rather than taking over what is there now.
        demand(&mut body, "uid", &uid);
        let applied = self.send(&target, &body, /* force */ true).await?;
        if matches!(&applied, Applied::Refused(why) if why.contains(IN_THE_WAY)) && known.was_applied(&body) {
            self.delete::<K>(&known.metadata).await?;
            return Ok(Applied::Leaving);
        }
        Ok(applied)
    }

    /// Creates `wanted`, which nobody owns, unless there is an object of that name; that one is left as it is.
    pub async fn create_unowned<K: Object>(&self, wanted: &K) -> Result<Applied<K>, Error> {
        let what = format!("{} {}/{}", K::kind(&()), wanted.namespace().unwrap_or_default(), wanted.name_any());
        let api: Api<K> = self.api(&wanted.namespace().unwrap_or_default());
        // One at a time: several Skills of a new tenant find at once that its memory is missing.
        let _one = self.creating.lock().await;
        let found = api.get_opt(&wanted.name_any()).await.map_err(Error::api(format!("read {what}")))?;
        if found.is_some() {
            return Ok(Applied::Stands);
        }
        self.metrics.wrote(&K::kind(&()), "create");
        match api.create(&owned::posting(), wanted).await.map_err(Error::api(format!("create {what}"))) {
            Ok(created) => Ok(Applied::Written(Box::new(created))),
            Err(error) if error.is_conflict() => Ok(Applied::Stands),
            Err(error) => refusal(error),
        }
    }

    /// Deletes an object, if it is still the one that is meant.
    pub async fn delete<K: Object>(&self, metadata: &ObjectMeta) -> Result<(), Error> {
        self.delete_within::<K>(metadata, None).await
    }

    /// The same, with so many seconds to end, where that is not to be the object's own matter.
    pub async fn delete_within<K: Object>(&self, metadata: &ObjectMeta, grace: Option<u32>) -> Result<(), Error> {
        let (Some(namespace), Some(name), Some(uid)) = (&metadata.namespace, &metadata.name, &metadata.uid) else {
            return Ok(());
        };
        if metadata.deletion_timestamp.is_some() || !self.memory.is_first_deletion(uid) {
            return Ok(());
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
            grace_period_seconds: grace,
            ..DeleteParams::background()
        };
        self.metrics.wrote(&K::kind(&()), "delete");
        let what = format!("delete {} {namespace}/{name}", K::kind(&()));
        match self.api::<K>(namespace).delete(name, &parameters).await.map_err(Error::api(what)) {
            Ok(_) => Ok(()),
            // Gone, or another one of the same name: what was meant is not there.
            Err(error) if error.is_gone() || error.is_conflict() => Ok(()),
            Err(error) => {
                self.memory.forget(uid);
                Err(error)
            }
        }
    }

    /// Deletes an object, if it is still as it was seen. Where it is not, its change wakes whoever wants to look again.
    pub async fn delete_as_seen<K: Object>(&self, seen: &K) -> Result<(), Error> {
        let (namespace, name) = (seen.namespace().unwrap_or_default(), seen.name_any());
        let preconditions = Preconditions { uid: seen.uid(), resource_version: seen.resource_version() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        self.metrics.wrote(&K::kind(&()), "delete");
        let what = format!("delete {} {namespace}/{name}", K::kind(&()));
        match self.api::<K>(&namespace).delete(&name, &parameters).await.map_err(Error::api(what)) {
            Err(error) if !(error.is_gone() || error.is_conflict()) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn ask<K: Object>(&self, target: &Target) -> Result<Option<Known>, Error> {
        let found = self.api::<K>(&target.namespace).get_opt(&target.name).await;
        let found = found.map_err(Error::api(format!("read {}", target.what)))?;
        Ok(found.as_ref().and_then(Known::whole))
    }

    async fn send<K: Object>(&self, target: &Target, body: &Value, force: bool) -> Result<Applied<K>, Error> {
        let parameters = PatchParams { force, ..PatchParams::apply(MANAGER) };
        self.metrics.wrote(&K::kind(&()), "apply");
        let sent = self.api::<K>(&target.namespace).patch(&target.name, &parameters, &Patch::Apply(body)).await;
        match sent.map_err(Error::api(format!("apply {}", target.what))) {
            Ok(answer) => {
                self.memory.remember(answer.meta(), body, json(&answer, &target.what)?);
                Ok(Applied::Written(Box::new(answer)))
            }
            Err(error) => refusal(error),
        }
    }

    fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Which object is meant, and for whom.
struct Target {
    namespace: String,
    name: String,
    what: String,
    owner_uid: String,
    owner_name: String,
}

impl Target {
    fn new<K: Object>(wanted: &K) -> Result<Self, Error> {
        let namespace = wanted.namespace().unwrap_or_default();
        let name = wanted.name_any();
        let what = format!("{} {namespace}/{name}", K::kind(&()));
        let owner = wanted.owner_references().iter().find(|owner| owner.controller == Some(true));
        match owner {
            Some(owner) => {
                Ok(Self { namespace, name, what, owner_uid: owner.uid.clone(), owner_name: owner.name.clone() })
            }
            None => Err(Error::Incomplete { what, field: "metadata.ownerReferences" }),
        }
    }

    /// What stands in the way of writing to what is there; none where it is ours.
    fn claim<K>(&self, there: &ObjectMeta) -> Option<Applied<K>> {
        if owned::is_owned_by(there, &self.owner_uid) {
            return there.deletion_timestamp.is_some().then_some(Applied::Leaving);
        }
        let owners = there.owner_references.iter().flatten();
        let of_namesake = owners.into_iter().any(|owner| owner.name == self.owner_name && owner.uid != self.owner_uid);
        if owned::is_managed(there) && of_namesake { Some(Applied::Leaving) } else { Some(Applied::NameTaken) }
    }
}

impl Known {
    /// Whether what is wanted now was applied before: then somebody changed the object since.
    fn was_applied(&self, wanted: &Value) -> bool {
        let applied = |object: &Value| object.get("metadata")?.get("annotations")?.get(ANNOTATION_APPLIED).cloned();
        let before = applied(&self.whole);
        before.is_some() && before == applied(wanted)
    }

    /// Whether its content is known, and nobody can change it any more.
    fn is_frozen(&self) -> bool {
        self.whole.get("immutable") == Some(&Value::Bool(true))
    }

    fn has_data_of(&self, wanted: &Value) -> bool {
        let data = |object: &Value| object.get("data").cloned().unwrap_or_default();
        subset::holds(&data(wanted), &data(&self.whole))
    }

    fn stands(&self, wanted: &Value) -> bool {
        if !self.metadata_only {
            return subset::holds(wanted, &self.whole);
        }
        let both = (wanted.get("metadata"), self.whole.get("metadata"));
        matches!(both, (Some(wanted), Some(live)) if subset::holds(wanted, live))
    }
}

/// Writes the digest of what is wanted into it: what is there still holds all of a smaller wish, so only the
/// digest shows that a field is to go.
fn sign(body: &mut Value) {
    let digest = Digest::of_value(body);
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(ANNOTATION_APPLIED.to_owned(), Value::String(digest.short(16).to_owned()));
    }
}

/// Makes an apply fail unless what is there has this value in its metadata.
fn demand(body: &mut Value, field: &str, value: &str) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(field.to_owned(), Value::String(value.to_owned()));
    }
}

/// Separates what lies in the object or its namespace from what may pass by itself.
fn refusal<K>(error: Error) -> Result<Applied<K>, Error> {
    match &error {
        Error::Api { source: kube::Error::Api(status), .. } if !error.is_gone() && is_refusal(status) => {
            Ok(Applied::Refused(status.message.clone()))
        }
        _ => Err(error),
    }
}

/// Server-side apply says 500 of objects that it cannot read.
fn is_refusal(status: &Status) -> bool {
    let unreadable = ["failed to convert new object", "failed to create typed patch object"];
    match status.code {
        400 | 403 | 422 => true,
        500 => unreadable.iter().any(|beginning| status.message.starts_with(beginning)),
        _ => false,
    }
}

fn json<K: Serialize>(object: &K, what: &str) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|source| Error::Json { what: what.to_owned(), source })
}

#[cfg(test)]
mod tests;
