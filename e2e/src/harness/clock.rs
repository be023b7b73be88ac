//! Changes the clock of the operator alone, by a preloaded library that replaces `clock_gettime`.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::Command;
use std::time::Duration;

use bloomery_testkit::json::typed;
use futures::FutureExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use super::cluster::Cluster;
use super::command;
use super::objects::write;
use super::operator::{CONTAINER, NAMESPACE, with_template};

/// The file name of the library.
const LIBRARY: &str = "clock.so";
/// The name of the ConfigMap and the volume with the library.
const CONFIG_MAP: &str = "e2e-clock";
/// The directory of the library in the container.
const MOUNT_PATH: &str = "/e2e";

/// Runs `meanwhile` while the operator's clock is ahead by `by`. The clock is set back afterwards, also if `meanwhile` fails.
///
/// The caller must be a [`story_alone`](super::story_alone) on the local cluster, because the library is compiled on this
/// machine.
pub async fn ahead<T>(cluster: &Cluster, by: Duration, meanwhile: impl AsyncFnOnce() -> T) -> T {
    let maps = Api::<ConfigMap>::namespaced(cluster.client.clone(), NAMESPACE);
    let mut config_map: ConfigMap = typed(json!({"metadata": {"name": CONFIG_MAP}}));
    config_map.binary_data = Some([(LIBRARY.to_owned(), ByteString(library(by)))].into());
    maps.create(&write(), &config_map).await.expect("the ConfigMap with the library is created");

    let container = json!({
        "name": CONTAINER, "env": [{"name": "LD_PRELOAD", "value": format!("{MOUNT_PATH}/{LIBRARY}")}],
        "volumeMounts": [{"name": CONFIG_MAP, "mountPath": MOUNT_PATH}],
    });
    let volume = json!({"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}});
    let change = json!({"spec": {"containers": [container], "volumes": [volume]}});
    let changed = AssertUnwindSafe(with_template(cluster, &change, meanwhile));
    let done = changed.catch_unwind().await;
    maps.delete(CONFIG_MAP, &DeleteParams::default()).await.expect("the ConfigMap with the library is deleted");
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

fn library(by: Duration) -> Vec<u8> {
    let source = format!(
        "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n\
         int clock_gettime(clockid_t id, struct timespec *t) {{\n\
             long failed = syscall(SYS_clock_gettime, id, t);\n\
             if (!failed && id == CLOCK_REALTIME) t->tv_sec += {};\n\
             return failed;\n}}\n",
        by.as_secs()
    );
    let dir = std::env::temp_dir().join(format!("{CONFIG_MAP}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory is made");
    let (from, to) = (dir.join("clock.c"), dir.join(LIBRARY));
    std::fs::write(&from, source).expect("the source is written");
    command::run(Command::new("cc").args(["-shared", "-fPIC", "-Os", "-s", "-o"]).arg(&to).arg(&from));
    let made = std::fs::read(&to).expect("the library is made");
    let _ = std::fs::remove_dir_all(&dir);
    made
}
