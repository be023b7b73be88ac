//! The servers that are compared, each as a process of its own.

use crate::client::Target;
use crate::jobs::SKILL;
use bloomery_journal::JOBS;
use rustix::param::clock_ticks_per_second;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The variable that makes this program the floor: the directory of the logs.
pub(crate) const FLOOR: &str = "BLOOMERY_BENCH_FLOOR";

/// The variable with the path of the command line, which `hack/bench` builds.
const COMMAND_LINE: &str = "BLOOMERY_BENCH_CLI";

/// The variable with the path of a Python that has Starlette, which `hack/bench` installs.
const PYTHON: &str = "BLOOMERY_BENCH_PYTHON";

/// The arguments of the gateway before the memory. No Job is driven, so the model is not asked.
const SERVE: [&str; 8] =
    ["serve", "--port", "0", "--model", "none", "--model-url", "http://127.0.0.1:9/v1", "--memory"];

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `bloomery serve`.
    Gateway,
    /// The minimal server in axum.
    Floor,
    /// The minimal server in Node.
    Node,
    /// The minimal server in Python.
    Starlette,
}

/// A server. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    pub(crate) target: Target,
    /// Keeps the pipe open.
    _output: BufReader<Box<dyn Read>>,
}

impl Server {
    /// Starts a server of a memory, and waits until it listens. Returns `None` if its program is missing.
    pub(crate) fn start(kind: Kind, memory: &Path) -> Option<Self> {
        let mut command = command(kind, memory)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        if kind == Kind::Gateway {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn().ok()?;
        let output: Box<dyn Read> = match child.stderr.take() {
            Some(stderr) => Box::new(stderr),
            None => Box::new(child.stdout.take().unwrap()),
        };
        let mut output = BufReader::new(output);
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let first = line();
        let (_, address) = first.split_once("http://").unwrap_or_else(|| panic!("{kind:?}: {first}"));
        // A page has its token after `/#`.
        let host = address.split('/').next().unwrap().to_owned();
        let token = match kind {
            Kind::Gateway => line().strip_prefix("Authorization: Bearer ").unwrap().to_owned(),
            Kind::Floor | Kind::Node | Kind::Starlette => String::new(),
        };
        Some(Self { child, target: Target { host, token }, _output: output })
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time of the process so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        // The name of the program may have blanks. The state comes after it, and ten fields later the times in the program and in the kernel.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Returns the command that starts a server; `None` if this run has no program for it.
fn command(kind: Kind, memory: &Path) -> Option<Command> {
    let jobs = memory.join(SKILL).join(JOBS);
    let script = |program: &Path, name: &str| {
        let mut command = Command::new(program);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/streams").join(name)).arg(&jobs);
        command
    };
    Some(match kind {
        Kind::Gateway => {
            let program = std::env::var_os(COMMAND_LINE).expect("hack/bench sets the path of the command line");
            let mut command = Command::new(program);
            command.args(SERVE).arg(memory).arg("--root").arg(memory);
            command
        }
        Kind::Floor => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.env(FLOOR, &jobs);
            command
        }
        Kind::Node => script(Path::new("node"), "floor.mjs"),
        Kind::Starlette => script(Path::new(&std::env::var_os(PYTHON)?), "floor.py"),
    })
}
