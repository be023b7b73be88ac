//! The setup of a test: a temporary directory, a scripted model, and the binary.

pub use bloomery_testkit::greeter::{SAYS_HELLO, SKILL};
use bloomery_testkit::model_server::script::Script;
use bloomery_testkit::model_server::{Key, ModelServer, Violations};
use bloomery_testkit::serving::Running;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// The timeout for events that happen soon.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A temporary directory, and a scripted model.
pub struct Setup {
    pub dir: tempfile::TempDir,
    pub model: Running,
}

impl Setup {
    /// Starts a model that follows a script.
    pub async fn new(script: &str) -> Self {
        Self::with_model(ModelServer::new(Script::from_yaml(script).unwrap())).await
    }

    /// Starts a model that requires a key.
    pub async fn with_key(script: &str, key: &str) -> Self {
        Self::with_model(ModelServer::new(Script::from_yaml(script).unwrap()).with_key(Key::Value(key.to_owned())))
            .await
    }

    async fn with_model(model: ModelServer) -> Self {
        bloomery_http::install_tls_provider();
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

    /// Returns a command that runs the binary in this directory. Of the environment, it has only PATH.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command.args(args).current_dir(self.dir.path()).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the binary with these arguments.
    pub async fn bloomery(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(self.command(args).output().await.unwrap())
    }

    /// Runs `bloomery run` against the scripted model.
    pub async fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(self.run_command(args).output().await.unwrap())
    }

    /// Returns the command `bloomery run` against the scripted model.
    pub fn run_command(&self, args: &[&str]) -> Command {
        let url = self.url();
        self.command(&[&["run", "--model", "scripted", "--model-url", &url, "--patience", "5"], args].concat())
    }

    /// Starts `bloomery run` against the scripted model.
    pub fn start(&self, args: &[&str]) -> Child {
        self.run_command(args).spawn().unwrap()
    }

    /// Waits until the scripted model holds this many requests.
    pub async fn wait_for_held(&self, times: usize) {
        self.until(|held| held.matches("\"name\"").count() >= times).await;
    }

    /// Polls the scripted model until `is_reached` accepts its list of held requests.
    async fn until(&self, is_reached: impl Fn(&str) -> bool) {
        let url = format!("{}/control/held", self.model.url());
        let mut held = String::new();
        let seen = tokio::time::timeout(TIMEOUT, async {
            while !is_reached(&held) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                held = reqwest::get(&url).await.unwrap().text().await.unwrap();
            }
        });
        assert!(seen.await.is_ok(), "the scripted model holds {held}");
    }

    /// Checks that no request violated the protocol of its provider or the expectations of the script.
    pub async fn assert_no_violations(&self) {
        let found: Violations = get(&format!("{}/control/violations", self.model.url())).await;
        assert_eq!(found.total, 0, "the model server got invalid requests: {:#?}", found.violations);
    }

    /// Waits until a file exists.
    pub async fn wait_for_file(&self, name: &str) {
        let there = tokio::time::timeout(TIMEOUT, async {
            while !self.path(name).exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(there.await.is_ok(), "there is no {name}");
    }

    /// Makes the scripted model answer the requests of a hold.
    pub async fn release(&self, hold: &str) {
        let url = format!("{}/control/release/{hold}", self.model.url());
        reqwest::Client::new().post(url).send().await.unwrap();
    }

    /// Returns the lines of a log in order.
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

    /// Returns the contents of all files below this directory.
    pub fn all_contents(&self) -> String {
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

/// Returns the JSON response of a server.
pub async fn get<T: serde::de::DeserializeOwned>(url: &str) -> T {
    serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap()
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    pub fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks the exit code, and that the output contains a text.
    #[track_caller]
    pub fn assert(&self, code: i32, says: &str) {
        assert!(
            self.code == code && (self.out.contains(says) || self.err.contains(says)),
            "{code}, {says:?}: {self:#?}"
        );
    }
}
