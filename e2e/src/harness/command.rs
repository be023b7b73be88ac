//! Runs the scripts of this checkout and the clients of the cluster.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Returns a path in this checkout.
pub fn checkout(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// Runs a command and returns its stdout. Fails if the command fails.
///
/// It blocks the thread, which is possible because each story has its own thread.
pub fn run(command: &mut Command) -> String {
    let output = attempt(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs a command and returns its output, also if it fails.
pub fn attempt(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

/// Returns the command of a script of this checkout.
pub fn script(path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(checkout(path));
    command.args(arguments);
    command
}

/// Returns the kubeconfig of the cluster. It is never the user's current context.
pub(super) fn kubeconfig() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let find = || PathBuf::from(run(&mut script("e2e/cluster/cluster", &["kubeconfig"])));
    PATH.get_or_init(find).clone()
}

/// Returns a kubectl command for the cluster.
pub fn kubectl(arguments: &[&str]) -> Command {
    client("kubectl", arguments)
}

/// Returns the lines `<kind>/<name> <status>` that kstatus prints for the objects of a YAML stream.
pub fn kstatus(objects: std::fs::File) -> String {
    let program = run(&mut script("e2e/cluster/cluster", &["kstatus"]));
    run(Command::new(program).stdin(objects))
}

/// Returns a Helm command for the cluster.
pub fn helm(arguments: &[&str]) -> Command {
    client("helm", arguments)
}

fn client(verb: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(run(&mut script("e2e/cluster/cluster", &[verb])));
    command.arg("--kubeconfig").arg(kubeconfig()).args(arguments);
    command
}

/// Returns a `bloomery` command for the cluster. `hack/images` builds the program beside these stories.
pub fn bloomery(arguments: &[&str]) -> Command {
    let mut command = program("bloomery");
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig());
    command
}

/// Returns the command of a gateway for the cluster, with the rights of the administrator. `hack/images` builds the program beside these
/// stories.
pub fn gateway(arguments: &[&str]) -> Command {
    let mut command = program("bloomery-gateway");
    command.args(arguments).env("KUBECONFIG", kubeconfig());
    command
}

/// Returns the command of a program of this checkout.
fn program(name: &str) -> Command {
    let here = std::env::current_exe().expect("a test is a program");
    let beside = here.parent().and_then(std::path::Path::parent).expect("tests are in deps, below the programs");
    Command::new(beside.join(name))
}
