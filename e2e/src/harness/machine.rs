//! The processes of the local cluster, and the volumes of its pods, which are on this machine.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bloomery_crds::names;
use bloomery_crds::pod::{self, WORKER_CONTAINER};
use bloomery_testkit::json::typed;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::command;
use super::objects::{PORT, write};
use super::tenant::Tenant;
use super::wait::eventually;

/// The time for which the API server does not answer.
const OUTAGE: Duration = Duration::from_secs(30);

/// A process of a pod, or of the cluster.
#[derive(Debug)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// Waits for the process of a pod that runs a program, found by the pod's cgroup.
    pub async fn find(pod: &Pod, program: &str) -> Self {
        let group = format!("pod{}", pod.uid().unwrap_or_default());
        let what = format!("a process {program} in {}", pod.name_any());
        let pid = eventually(&what, async || {
            processes().find(|pid| runs_in_cgroup(*pid, &group, program)).ok_or("there is none")
        });
        Self { pid: pid.await }
    }

    /// Returns the process of a daemon of the local cluster.
    pub fn of_daemon(name: &str) -> Self {
        let path = state().join("pids").join(name);
        let line = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let pid = line.split_whitespace().next().and_then(|pid| pid.parse().ok());
        Self { pid: pid.unwrap_or_else(|| panic!("{} has no process id", path.display())) }
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    /// Stops the process. It keeps its connections and does not answer.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Continues a stopped process.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Drops all packets of the pod to an address, as a broken network does.
    pub fn cut_off_from(&self, address: &str) {
        let mut route = Command::new("nsenter");
        route.args(["--target", &self.pid.to_string(), "--net", "ip", "route", "add", "blackhole", address]);
        command::run(&mut route);
    }

    /// Returns the resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the resident memory in KiB without the pages of files, such as the program.
    pub fn anonymous_kib(&self) -> u64 {
        self.status("RssAnon:")
    }

    /// Returns the peak of the resident memory in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Returns the addresses to which the pod of the process has opened TCP connections, also those that it has closed in the last minute.
    pub fn opened_connections(&self) -> Vec<IpAddr> {
        let sockets = ["tcp", "tcp6"].iter().flat_map(|table| {
            let path = format!("/proc/{}/net/{table}", self.pid);
            let table = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            table.lines().filter_map(Socket::parse).collect::<Vec<_>>()
        });
        let sockets: Vec<Socket> = sockets.collect();
        let served = |port: u16| sockets.iter().any(|socket| socket.listens && socket.local.port() == port);
        let opened = sockets.iter().filter(|socket| !socket.listens && !served(socket.local.port()));
        opened.map(|socket| socket.remote.ip()).collect()
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

/// A line of `/proc/net/tcp` or `/proc/net/tcp6`.
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    listens: bool,
}

impl Socket {
    /// Returns `None` for the header.
    fn parse(line: &str) -> Option<Self> {
        const LISTENS: &str = "0A";
        let mut fields = line.split_whitespace().skip(1);
        let mut address = || hex_address(fields.next()?);
        Some(Self { local: address()?, remote: address()?, listens: fields.next()? == LISTENS })
    }
}

/// Reads an address of `/proc/net/tcp`: the words of the IP address in the byte order of this machine, and the port.
fn hex_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(u32::to_ne_bytes);
    let words: Option<Vec<[u8; 4]>> = ip.as_bytes().chunks(8).map(word).collect();
    let bytes = words?.concat();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(bytes) => IpAddr::from(bytes),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Returns the directory of the local cluster.
fn state() -> PathBuf {
    std::env::var_os("BLOOMERY_STATE").unwrap_or_else(|| "/var/lib/bloomery-cluster".into()).into()
}

/// Rotates the log of a worker that runs, as the kubelet does: renames the file, and lets the container runtime open a new one.
pub async fn rotate_log(worker: &Pod) {
    let (namespace, name) = (worker.namespace().unwrap_or_default(), worker.name_any());
    let logs = format!("log/pods/{namespace}_{name}_{}/{WORKER_CONTAINER}", worker.uid().unwrap_or_default());
    let (log, rotated) = (state().join(&logs).join("0.log"), state().join(&logs).join("0.log.20270115-080000"));
    std::fs::rename(&log, rotated).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    let container = pod::worker_status(worker).and_then(|status| status.container_id.clone());
    let id =
        container.as_deref().and_then(|id| id.strip_prefix("containerd://")).expect("a worker that runs has an id");
    reopen_log(id);
    eventually("the container runtime to open a new log", async || {
        if log.exists() { Ok(()) } else { Err(log.display().to_string()) }
    })
    .await;
}

/// Calls `ReopenContainerLog` of the container runtime.
fn reopen_log(container: &str) {
    let length = |bytes: usize| u8::try_from(bytes).expect("a container has a short id");
    // The first field of a message in the format of Protocol Buffers, and the frame of gRPC.
    let mut message = vec![0x0a, length(container.len())];
    message.extend_from_slice(container.as_bytes());
    let mut frame = vec![0, 0, 0, 0, length(message.len())];
    frame.extend(message);
    let file = std::env::temp_dir().join(format!("reopen-{container}"));
    std::fs::write(&file, frame).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut call = Command::new("curl");
    call.args(["--silent", "--show-error", "--fail", "--max-time", "10", "--http2-prior-knowledge"]);
    call.args(["--header", "Content-Type: application/grpc", "--header", "TE: trailers"]);
    call.arg("--unix-socket").arg(state().join("run/containerd.sock"));
    call.arg("--data-binary").arg(format!("@{}", file.display()));
    command::run(call.arg("http://localhost/runtime.v1.RuntimeService/ReopenContainerLog"));
    let _ = std::fs::remove_file(&file);
}

/// Gives an image of the node a further name. If another image has the name, this one gets it.
pub fn tag_image(image: &str, name: &str) {
    command::run(&mut command::script("e2e/cluster/cluster", &["tag", image, name]));
}

/// Stops the API server for 30 s. Meanwhile, the scripted model of the tenant releases a hold.
pub async fn release_during_outage(tenant: &Tenant, hold: &str) {
    let service = tenant.api::<Service>().get("model").await.expect("the Service of the model exists");
    let address = service.spec.and_then(|spec| spec.cluster_ip).expect("it has an address");
    let server = Process::of_daemon("kube-apiserver");
    server.freeze();
    // Without the API server, because its proxy does not answer either.
    let release = format!("http://{address}:{PORT}/control/release/{hold}");
    let released = reqwest::Client::new().post(release).send().await;
    tokio::time::sleep(OUTAGE).await;
    server.thaw();
    released.expect("the model answers");
}

impl Tenant {
    /// Returns the process of the shop's MCP server that a Skill runs.
    pub async fn orders_of(&self, skill: &str) -> Process {
        let ours =
            ListParams::default().labels(&format!("{}={skill},app.kubernetes.io/component=mcp", names::LABEL_SKILL));
        let pods = self.api::<Pod>().list(&ours).await.expect("pods can be listed");
        Process::find(pods.items.first().expect("the MCP server has a pod"), "bloomery-e2e-orders").await
    }
}

/// The memory of a tenant on a small file system, which a story can fill. Dropping the value removes it.
#[derive(Debug)]
pub struct SmallMemory {
    dir: PathBuf,
    volume: String,
}

/// The size of the file system: enough for the skill directory of a few Jobs.
const SMALL_SIZE: &str = "4m";

/// The name of the file that fills it.
const FILLER: &str = "filler";

impl SmallMemory {
    /// Creates the memory of a tenant that has none yet.
    pub async fn create(tenant: &Tenant) -> Self {
        let volume = format!("small-{}", tenant.namespace);
        let dir = std::env::temp_dir().join(&volume);
        std::fs::create_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let options = format!("size={SMALL_SIZE},mode=0755");
        command::run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "bloomery-e2e"]).arg(&dir));
        let memory = Self { dir, volume };
        let class = "";
        let nodes = Api::<Node>::all(tenant.cluster.client.clone()).list(&ListParams::default()).await;
        let node = nodes.expect("nodes can be listed").items.first().map(ResourceExt::name_any).expect("a node");
        let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
        let made: PersistentVolume = typed(json!({
            "metadata": {"name": memory.volume},
            "spec": {
                "capacity": {"storage": "4Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "local": {"path": memory.dir}, "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": tenant.namespace, "name": names::MEMORY_CLAIM},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }));
        Api::all(tenant.cluster.client.clone()).create(&write(), &made).await.expect("the volume is created");
        let claim: PersistentVolumeClaim = typed(json!({
            "metadata": {"name": names::MEMORY_CLAIM},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": memory.volume,
                "resources": {"requests": {"storage": "4Mi"}},
            },
        }));
        tenant.create(claim).await;
        memory
    }

    /// Fills the file system completely.
    pub fn fill(&self) {
        let mut filler = std::fs::File::create(self.dir.join(FILLER)).expect("the filler is created");
        while filler.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    }

    /// Removes the file that fills it.
    pub fn clear(&self) {
        std::fs::remove_file(self.dir.join(FILLER)).expect("the filler is deleted");
    }
}

impl Drop for SmallMemory {
    // Unmounts lazily, because the tenant's pods may still have the file system mounted.
    fn drop(&mut self) {
        command::attempt(&mut command::kubectl(&["delete", "pv", &self.volume, "--wait=false"]));
        command::attempt(Command::new("umount").arg("--lazy").arg(&self.dir));
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc can be read");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns whether a process is in a cgroup and runs a program. Returns false for a process that has ended.
fn runs_in_cgroup(pid: u32, group: &str, program: &str) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let first = read("cmdline");
    let first = first.split('\0').next().unwrap_or_default();
    Path::new(first).file_name().is_some_and(|name| name == program) && read("cgroup").contains(group)
}

/// Returns the directory of a tenant's memory.
pub async fn memory(tenant: &Tenant) -> PathBuf {
    let claim = tenant.api::<PersistentVolumeClaim>().get(names::MEMORY_CLAIM).await.expect("the memory claim exists");
    let volume = claim.spec.and_then(|spec| spec.volume_name).expect("the memory claim is bound");
    let volume =
        Api::<PersistentVolume>::all(tenant.cluster.client.clone()).get(&volume).await.expect("its volume exists");
    let local = volume.spec.and_then(|spec| spec.local).expect("volumes of the local cluster are local");
    PathBuf::from(local.path)
}
