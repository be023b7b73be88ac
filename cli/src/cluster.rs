//! The way to a cluster: through the user's own kubeconfig, with the user's own rights.

mod kubeconfig;

use crate::args::ClusterArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_crds::names::GROUP;
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::Approval;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// How long an answer of the API server is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A cluster, as one user sees one namespace of it.
pub struct Cluster {
    /// Speaks with the API server.
    pub client: Client,
    /// Speaks with it where an answer may take its time: what is watched, and logs that are followed.
    pub watch_client: Client,
    /// The namespace.
    pub namespace: String,
    /// The address of the API server.
    server: String,
}

/// A right in a namespace: a verb on a resource, of one name or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The group of the resource; none for Kubernetes' own first one, which has pods.
    pub group: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The resource, in the plural, with its subresource: `pods/log`.
    pub resource: &'static str,
    /// The one object.
    pub name: Option<String>,
}

impl Right {
    /// A right on all Jobs.
    pub fn on_jobs(verb: &'static str) -> Self {
        Self { group: GROUP, verb, resource: "skilljobs", name: None }
    }

    /// A right on what pods are, or on their logs.
    pub fn on_pods(verb: &'static str, resource: &'static str) -> Self {
        Self { group: "", verb, resource, name: None }
    }

    /// The right in words.
    pub fn description(&self) -> String {
        let Self { group, verb, resource, name } = self;
        let dot = if group.is_empty() { "" } else { "." };
        let name = name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("the verb {verb} on {resource}{dot}{group}{name}")
    }

    /// The rule of a role that gives it.
    fn rule(&self) -> String {
        let Self { group, verb, resource, .. } = self;
        let group = if group.is_empty() { "\"\"" } else { group };
        format!("- {{apiGroups: [{group}], resources: [{resource}], verbs: [{verb}]}}")
    }
}

/// Runs a command that waits for a cluster.
///
/// # Errors
/// Those of the command.
pub fn block_on(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::failed(error.to_string()))?.block_on(command)
}

impl Cluster {
    /// Finds the cluster. Nothing is sent.
    ///
    /// # Errors
    /// If no kubeconfig can be used.
    pub async fn find(args: &ClusterArgs) -> Result<Self, Error> {
        // It fails where a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = config(args).await?;
        config.read_timeout = Some(REQUEST_TIMEOUT);
        config.reset_reader_on_write = true;
        if let Some(user) = &args.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = Some(args.groups.clone()).filter(|groups| !groups.is_empty());
        }
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config.clone()).map_err(|error| unusable(&error))?;
        config.read_timeout = None;
        let server = config.cluster_url.to_string();
        let watch_client = Client::try_from(config).map_err(|error| unusable(&error))?;
        Ok(Self { client, watch_client, namespace, server })
    }

    /// Who the API server takes this user for.
    ///
    /// # Errors
    /// If it does not say.
    pub async fn user(&self) -> Result<String, Error> {
        let api = Api::<SelfSubjectReview>::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.map_err(|error| self.request_error("asking who you are", &error))?;
        let user = review.status.and_then(|status| status.user_info).and_then(|info| info.username);
        user.ok_or_else(|| Error::failed("the API server does not say who you are"))
    }

    /// Those of the rights that this user does not have.
    ///
    /// # Errors
    /// If the API server does not say.
    pub async fn missing(&self, rights: Vec<Right>) -> Result<Vec<Right>, Error> {
        self.missing_in(Some(&self.namespace), rights).await
    }

    /// The same in a namespace, or in all of them at once.
    async fn missing_in(&self, namespace: Option<&str>, rights: Vec<Right>) -> Result<Vec<Right>, Error> {
        let api = Api::<SelfSubjectAccessReview>::all(self.client.clone());
        let mut missing = Vec::new();
        for right in rights {
            let (resource, subresource) = match right.resource.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
                None => (right.resource, None),
            };
            let attributes = ResourceAttributes {
                group: Some(right.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(right.verb.to_owned()),
                name: right.name.clone(),
                namespace: namespace.map(str::to_owned),
                ..ResourceAttributes::default()
            };
            let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
            let review = SelfSubjectAccessReview { spec, ..Default::default() };
            let review = api.create(&PostParams::default(), &review).await;
            let review = review.map_err(|error| self.request_error("asking what you may do", &error))?;
            if !review.status.is_some_and(|status| status.allowed) {
                missing.push(right);
            }
        }
        Ok(missing)
    }
}

/// The objects that are to be kept, a page after the other.
///
/// # Errors
/// If they may not be listed.
pub async fn list_all<K>(api: &Api<K>, params: ListParams, mut keep: impl FnMut(&K) -> bool) -> kube::Result<Vec<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut kept, mut params) = (Vec::new(), params.limit(PAGE));
    loop {
        let page = api.list(&params).await?;
        kept.extend(page.items.into_iter().filter(&mut keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(kept),
        }
    }
}

impl Cluster {
    /// The Approvals of the namespace that are to be kept. Whose an Approval is, its spec says: its labels may be changed by
    /// whoever may patch it.
    ///
    /// # Errors
    /// If they may not be listed.
    pub async fn approvals(&self, keep: impl FnMut(&Approval) -> bool) -> kube::Result<Vec<Approval>> {
        list_all(&Api::namespaced(self.client.clone(), &self.namespace), ListParams::default(), keep).await
    }

    /// What went wrong on the way to the API server, or there.
    pub fn request_error(&self, doing: &str, error: &kube::Error) -> Error {
        match error {
            kube::Error::Api(status) => Error::failed(format!("{doing}: the API server says: {}", status.message)),
            kube::Error::SerdeError(error) => {
                Error::failed(format!("{doing}: the API server's answer cannot be read: {error}"))
            }
            other => Error::failed(format!(
                "{doing}: the API server {} cannot be reached: {}. See that it runs, and that you mean this cluster: \
                 --context and --kubeconfig name another",
                self.server,
                with_causes(other)
            )),
        }
    }

    /// Why the API server did not do what it was asked in the namespace: where it refuses, with those of the rights that are
    /// missing.
    pub async fn refused(&self, doing: &str, error: &kube::Error, rights: Vec<Right>) -> Error {
        self.refused_in(Some(&self.namespace), doing, error, rights).await
    }

    /// The same of what it was asked in all namespaces at once.
    pub async fn refused_everywhere(&self, doing: &str, error: &kube::Error, rights: Vec<Right>) -> Error {
        self.refused_in(None, doing, error, rights).await
    }

    async fn refused_in(&self, namespace: Option<&str>, doing: &str, error: &kube::Error, rights: Vec<Right>) -> Error {
        let told = self.request_error(doing, error);
        let kube::Error::Api(status) = error else { return told };
        if status.code != 403 {
            return told;
        }
        // What cannot be known is not told: the API server has said no already.
        let missing = self.missing_in(namespace, rights).await.unwrap_or_default();
        if missing.is_empty() {
            return told;
        }
        let what: Vec<String> = missing.iter().map(Right::description).collect();
        let rules: Vec<String> = missing.iter().map(|right| format!("\n  {}", right.rule())).collect();
        let (place, role) = match namespace {
            Some(namespace) => (format!("in the namespace {namespace}"), "A role"),
            None => ("in all namespaces".to_owned(), "A ClusterRole with a ClusterRoleBinding"),
        };
        let what = what.join(", and ");
        Error::failed(format!("{}\nMissing {place} is {what}. {role} gives it with:{}", told.message, rules.concat()))
    }
}

async fn config(args: &ClusterArgs) -> Result<Config, Error> {
    let kubeconfig = match kubeconfig::read(args.kubeconfig.as_deref()) {
        Ok(kubeconfig) => kubeconfig,
        // In a pod there is none, and kubectl takes the pod's own account.
        Err(error) if args.kubeconfig.is_none() && args.context.is_none() => {
            return Config::incluster().map_err(|_| unusable(&error));
        }
        Err(error) => return Err(unusable(&error)),
    };
    if let Some(context) = &args.context {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        if !known.contains(&context.as_str()) {
            let near = nearest::did_you_mean(context, known);
            return Err(Error::usage(format!("the kubeconfig has no context {context:?}.{near}")));
        }
    }
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unusable(&error))
}

fn unusable(error: &dyn std::error::Error) -> Error {
    Error::usage(format!(
        "no cluster: {}. Name a kubeconfig with --kubeconfig or KUBECONFIG, and a context with --context",
        with_causes(error)
    ))
}

/// An error with what is behind it, each said once.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text::sanitized_line(&text)
}
