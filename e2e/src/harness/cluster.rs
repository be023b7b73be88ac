//! The cluster that the stories run on, and the operator in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use axum::http::{HeaderName, HeaderValue};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::command;

/// Names the file of image references; set by `hack/e2e`, which has installed the operator.
const INSTALLED: &str = "BLOOMERY_IMAGES";

/// A connection to the cluster in use, with the operator of this checkout installed.
#[derive(Clone)]
pub struct Cluster {
    /// The client, with the rights of an administrator.
    pub client: Client,
}

impl Cluster {
    /// Connects, and installs the operator first if nobody has in this run.
    pub async fn connect() -> Self {
        static INSTALL: OnceLock<()> = OnceLock::new();
        INSTALL.get_or_init(install);
        let config = config().await;
        // What is under way when a connection to another process is made belongs to that one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { client: Client::try_from(config).expect("a client can be made") }
    }

    /// A client with the rights of somebody else, who need not exist.
    pub async fn acting_as(&self, user: &str, groups: &[&str]) -> Client {
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

/// Whether this is the cluster of `e2e/cluster`: its processes, volumes and audit log are on this machine.
pub fn is_local() -> bool {
    std::env::var_os("BLOOMERY_KUBECONFIG").is_none_or(|path| path.is_empty())
}

/// Says that a story, or a part of it, needs the local cluster.
pub fn is_local_or_says(what: &str) -> bool {
    let local = is_local();
    if !local {
        eprintln!("skipped: {what} needs the local cluster (BLOOMERY_KUBECONFIG names another)");
    }
    local
}

/// The reference of an image that `hack/images` built, by its directory under `images/`.
pub(super) fn image(name: &str) -> String {
    static IMAGES: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let images = IMAGES.get_or_init(|| {
        let path = std::env::var_os(INSTALLED).map_or_else(|| command::checkout("target/images.json"), PathBuf::from);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run `make images`", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    images.get(name).unwrap_or_else(|| panic!("there is no image `{name}`; there are {:?}", images.keys())).clone()
}

/// Brings the operator of this checkout into the cluster, where a story is run by itself.
fn install() {
    if std::env::var_os(INSTALLED).is_none() {
        command::run(&mut command::script("hack/images", &[]));
        command::run(&mut command::script("hack/install", &[]));
    }
}
