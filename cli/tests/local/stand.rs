//! A directory of its own, a scripted model, and the binary.

use bloomery_testkit::model_server::script::Script;
use bloomery_testkit::model_server::{Key, ModelServer, Violations};
use bloomery_testkit::serving::Running;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// A script that says one thing, which passes its gate.
pub const SAYS_HELLO: &str = "
conversations:
  - name: hello
    turns: [{say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

/// A Skill that wants nothing.
pub const SKILL: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: greeter}
spec:
  problem: {statement: Greet people}
";

/// How long a test waits for something that happens soon.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub struct Stand {
    pub dir: tempfile::TempDir,
    pub model: Running,
}

impl Stand {
    /// With a model that follows a script.
    pub async fn new(script: &str) -> Self {
        Self::of(ModelServer::new(Script::from_yaml(script).unwrap())).await
    }

    /// With a model that asks for a key.
    pub async fn with_key(script: &str, key: &str) -> Self {
        Self::of(ModelServer::new(Script::from_yaml(script).unwrap()).with_key(Key::Value(key.to_owned()))).await
    }

    async fn of(model: ModelServer) -> Self {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let model = model.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("skill.yaml"), SKILL).unwrap();
        Self { dir, model }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    pub fn url(&self) -> String {
        format!("{}/v1", self.model.url())
    }

    /// The binary in this directory, with nothing of this process's environment but where programs are.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command.args(args).current_dir(self.dir.path()).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    pub async fn bloomery(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().await.unwrap())
    }

    /// Runs a Skill against the scripted model.
    pub async fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.run_command(args).output().await.unwrap())
    }

    pub fn run_command(&self, args: &[&str]) -> Command {
        let url = self.url();
        self.command(&[&["run", "--model", "scripted", "--model-url", &url, "--patience", "5"], args].concat())
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.run_command(args).spawn().unwrap()
    }

    /// Waits until a request of a Job waits at a hold of the script.
    pub async fn until_held(&self, times: usize) {
        self.until(|held| held.matches("\"name\"").count() >= times).await;
    }

    async fn until(&self, is_so: impl Fn(&str) -> bool) {
        let url = format!("{}/control/held", self.model.url());
        let mut held = String::new();
        let seen = tokio::time::timeout(PATIENCE, async {
            while !is_so(&held) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                held = reqwest::get(&url).await.unwrap().text().await.unwrap();
            }
        });
        assert!(seen.await.is_ok(), "the scripted model holds {held}");
    }

    /// Fails if a request broke the protocol of its provider, or was not what the script expects.
    pub async fn was_asked_without_fault(&self) {
        let found: Violations = get(&format!("{}/control/violations", self.model.url())).await;
        assert_eq!(found.total, 0, "the model server was sent what it does not take: {:#?}", found.violations);
    }

    /// Waits until there is a file.
    pub async fn until_there_is(&self, name: &str) {
        let there = tokio::time::timeout(PATIENCE, async {
            while !self.path(name).exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(there.await.is_ok(), "there is no {name}");
    }

    pub async fn release(&self, hold: &str) {
        let url = format!("{}/control/release/{hold}", self.model.url());
        reqwest::Client::new().post(url).send().await.unwrap();
    }

    /// The lines of a log, in their order.
    pub fn log(&self, job: &str) -> Vec<String> {
        let dir = self.path(&format!("memory/{job}"));
        let mut names: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.retain(|name| name.extension().is_some_and(|end| end == "jsonl"));
        names.sort();
        names
            .iter()
            .flat_map(|name| fs::read_to_string(name).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Everything in every file below this directory.
    pub fn everything(&self) -> String {
        let mut all = String::new();
        gather(self.dir.path(), &mut all);
        all
    }
}

fn gather(dir: &Path, all: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, all);
        } else {
            all.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
        }
    }
}

/// What a server of e2e answers.
pub async fn get<T: serde::de::DeserializeOwned>(url: &str) -> T {
    serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap()
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn assert(&self, code: i32, says: &str) {
        assert!(
            self.code == code && (self.out.contains(says) || self.err.contains(says)),
            "{code}, {says:?}: {self:#?}"
        );
    }
}
