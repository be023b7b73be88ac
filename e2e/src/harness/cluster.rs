//! The cluster of the stories, with the operator under test.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use axum::http::{HeaderName, HeaderValue};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::command;

/// The environment variable with the path of the image references. `hack/e2e` sets it after installing the operator.
const IMAGES_VARIABLE: &str = "BLOOMERY_IMAGES";

/// A connection to the cluster, on which the operator of this checkout is installed.
#[derive(Clone)]
pub struct Cluster {
    /// A client with the rights of an administrator.
    pub client: Client,
}

impl Cluster {
    /// Connects. Installs the operator first if `hack/e2e` has not.
    pub async fn connect() -> Self {
        static INSTALL: OnceLock<()> = OnceLock::new();
        INSTALL.get_or_init(install);
        let config = config().await;
        // Fails if another part has already installed a provider. Any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: Client::try_from(config).expect("a client can be made") }
    }

    /// Returns a client that impersonates a user.
    pub async fn impersonating(&self, user: &str, groups: &[&str]) -> Client {
        let mut config = config().await;
        let value = |text: &str| HeaderValue::from_str(text).expect("a name is a header's value");
        config.headers.push((HeaderName::from_static("impersonate-user"), value(user)));
        for group in groups.iter().chain(&["system:authenticated"]) {
            config.headers.push((HeaderName::from_static("impersonate-group"), value(group)));
        }
        Client::try_from(config).expect("a client can be made")
    }
}

async fn config() -> Config {
    let config = Kubeconfig::read_from(command::kubeconfig()).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    config.expect("the kubeconfig names a cluster")
}

/// Returns whether this is the cluster of `e2e/cluster`, whose processes, volumes and audit log are on this machine.
pub fn is_local() -> bool {
    std::env::var_os("BLOOMERY_KUBECONFIG").is_none_or(|path| path.is_empty())
}

/// Returns whether this is the local cluster. If it is not, prints that a story or a part of it is skipped.
pub fn is_local_or_skips(what: &str) -> bool {
    let local = is_local();
    if !local {
        eprintln!("skipped: {what} needs the local cluster (BLOOMERY_KUBECONFIG names another)");
    }
    local
}

/// Returns the reference of an image that `hack/images` built, by its directory under `images/`.
pub fn image(name: &str) -> String {
    static IMAGES: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let images = IMAGES.get_or_init(|| {
        let path =
            std::env::var_os(IMAGES_VARIABLE).map_or_else(|| command::checkout("target/images.json"), PathBuf::from);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run `make images`", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    images.get(name).unwrap_or_else(|| panic!("there is no image `{name}`; there are {:?}", images.keys())).clone()
}

/// Builds and installs the operator of this checkout if a story runs without `hack/e2e`.
fn install() {
    if std::env::var_os(IMAGES_VARIABLE).is_none() {
        command::run(&mut command::script("hack/images", &[]));
        command::run(&mut command::script("hack/install", &[]));
    }
}
