//! Access to a cluster, with the user's own kubeconfig and rights.

mod kubeconfig;

pub use bloomery_embed::cluster::{Cluster, Right, list_all};

use crate::args::ClusterArgs;
use crate::error::Error;
use crate::exit::Exit;
use bloomery_crds::nearest;
use bloomery_embed::cluster::{Clients, with_causes};
use kube::Config;
use kube::config::KubeConfigOptions;

/// The name of this program as the writer of objects.
const FIELD_MANAGER: &str = "kubectl-bloomery";

/// The hint in errors of an API server that cannot be reached.
const HINT: &str = "Check that it is running, or select another cluster with --context or --kubeconfig";

/// Runs an asynchronous command to its end.
///
/// # Errors
/// Those of the command.
pub fn block_on(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::failed(error.to_string()))?.block_on(command)
}

/// Creates the clients from a kubeconfig. Sends no request.
///
/// # Errors
/// If there is no usable kubeconfig.
pub async fn open(args: &ClusterArgs) -> Result<Cluster, Error> {
    let mut config = config(args).await?;
    if let Some(user) = &args.user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = Some(args.groups.clone()).filter(|groups| !groups.is_empty());
    }
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let server = config.cluster_url.to_string();
    let clients = Clients::new(config).map_err(|error| unusable(&error))?;
    let Clients { requests: client, streams: watch_client } = clients;
    let (field_manager, hint) = (FIELD_MANAGER, HINT);
    Ok(Cluster { client, watch_client, namespace, server, field_manager, hint, impersonation: None })
}

/// Reads the configuration of the selected context.
async fn config(args: &ClusterArgs) -> Result<Config, Error> {
    let kubeconfig = match kubeconfig::read(args.kubeconfig.as_deref()) {
        Ok(kubeconfig) => kubeconfig,
        // In a pod without a kubeconfig, use the service account of the pod, as kubectl does.
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

/// Returns the error for a kubeconfig that cannot be used.
fn unusable(error: &dyn std::error::Error) -> Error {
    Error::usage(format!(
        "no cluster can be used: {}. Name a kubeconfig with --kubeconfig or KUBECONFIG, and a context with --context",
        with_causes(error)
    ))
}
