//! What of the local cluster is on this machine: the processes of its pods, and its volumes.

use std::path::{Path, PathBuf};
use std::process::Command;

use bloomery_crds::names;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::command;
use super::tenant::Tenant;
use super::wait::eventually;

/// A process of a pod.
#[derive(Debug)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// Finds the process of a pod that runs a program, by the pod's cgroup.
    pub async fn of(pod: &Pod, program: &str) -> Self {
        let group = format!("pod{}", pod.uid().unwrap_or_default());
        let what = format!("a process {program} in {}", pod.name_any());
        let pid = eventually(&what, async || processes().find(|pid| is(*pid, &group, program)).ok_or("there is none"));
        Self { pid: pid.await }
    }

    /// Ends it as a crash does: SIGKILL.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    /// Lets it hang: it keeps its connections and answers nothing.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// The memory that it holds now, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most memory that it ever held, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn signal(&self, name: &str) {
        command::run(Command::new("kill").arg(format!("-{name}")).arg(self.pid.to_string()));
    }

    fn status(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid);
        let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{path} has no {field}"))
    }
}

impl Tenant {
    /// Finds the process of the shop's MCP server that a Skill runs.
    pub async fn orders_of(&self, skill: &str) -> Process {
        let ours =
            ListParams::default().labels(&format!("{}={skill},app.kubernetes.io/component=mcp", names::LABEL_SKILL));
        let pods = self.api::<Pod>().list(&ours).await.expect("pods can be listed");
        Process::of(pods.items.first().expect("the MCP server has a pod"), "bloomery-e2e-orders").await
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc can be read");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Whether a process is in a cgroup and runs a program. One that ends meanwhile is not.
fn is(pid: u32, group: &str, program: &str) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let first = read("cmdline");
    let first = first.split('\0').next().unwrap_or_default();
    Path::new(first).file_name().is_some_and(|name| name == program) && read("cgroup").contains(group)
}

/// The directory of a tenant's memory.
pub async fn memory(tenant: &Tenant) -> PathBuf {
    let claim = tenant.api::<PersistentVolumeClaim>().get(names::MEMORY_CLAIM).await.expect("the memory claim exists");
    let volume = claim.spec.and_then(|spec| spec.volume_name).expect("the memory claim is bound");
    let volume =
        Api::<PersistentVolume>::all(tenant.cluster.client.clone()).get(&volume).await.expect("its volume exists");
    let local = volume.spec.and_then(|spec| spec.local).expect("volumes of the local cluster are local");
    PathBuf::from(local.path)
}
