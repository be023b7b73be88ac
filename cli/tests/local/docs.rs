//! Tests of the examples in docs/how-to/run-locally.md and README.md, and of the table in older-runtime.md.

use super::serve::Server;
use super::setup::{CommandOutput, SAYS_HELLO, Setup};
use bloomery_testkit::orders;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// The addresses of the scripted model and of the orders' MCP server on the page.
const MODEL: &str = "http://127.0.0.1:8087";
const ORDERS: &str = "http://127.0.0.1:8088";

/// The address of `bloomery serve` on the page.
const SERVER: &str = "http://127.0.0.1:8420";

/// Returns the search path for `bloomery` and other programs.
fn path() -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_bloomery")).parent().unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

/// Returns the page, and a directory with the files of the checkout that its examples use.
async fn page_and_setup() -> (String, Setup) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("docs/how-to/run-locally.md")).unwrap();
    let setup = Setup::new(&fs::read_to_string(top.join("docs/examples/model.yaml")).unwrap()).await;
    for dir in ["docs/examples", "skill-templates"] {
        for entry in fs::read_dir(top.join(dir)).unwrap() {
            let file = entry.unwrap();
            if file.path().is_dir() {
                continue;
            }
            let name = format!("{dir}/{}", file.file_name().to_str().unwrap());
            setup.write(&name, &fs::read_to_string(file.path()).unwrap());
        }
    }
    (page, setup)
}

/// Returns a shell with a command, in the directory of the examples.
fn shell(setup: &Setup, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(setup.dir.path()).env_clear().env("PATH", path());
    shell
}

/// Runs every `console` block in the order of the page. It has the form `$ command`, followed by the expected stdout.
#[tokio::test]
async fn the_examples_of_the_page_are_correct() {
    let (page, setup) = page_and_setup().await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let mut run = 0;
    for block in page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (command, shown) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let command = command.replace(MODEL, &setup.model.url()).replace(ORDERS, &orders.url());
        let output = shell(&setup, &command).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown, "{command}: {stderr}");
        run += 1;
    }
    assert_eq!(run, 9);
}

/// The first block of the section starts a server, and the second one uses it.
#[tokio::test]
async fn the_commands_of_the_page_serve_jobs_to_a_chat() {
    let (page, setup) = page_and_setup().await;
    let section = page.split("## Serve Jobs over HTTP").nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks: Vec<&str> = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [serve, chat] = blocks[..] else { panic!("{blocks:?}") };
    // The server takes the place of the shell, so that it ends with the test.
    let serve = serve.replace(MODEL, &setup.model.url()).replace("bloomery serve", "exec bloomery serve --port 0");
    let mut command = shell(&setup, &serve);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let server = Server::listening(command).await;
    let chat = chat.replace(SERVER, &server.url).replace("TOKEN=5f0c...", &format!("TOKEN={}", server.token));
    let result = CommandOutput::new(shell(&setup, &chat).output().await.unwrap());
    result.assert(0, "Good morning, Ada.");
    result.assert(0, "chat.completion");
    result.assert(0, "event: conversation.finished");
    setup.assert_no_violations().await;
}

/// The README has a command that needs a key, and one that needs none.
#[tokio::test]
async fn the_commands_of_the_readme_work() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("README.md")).unwrap();
    let section = page.split("## Without a cluster").nth(1).unwrap().split("\n## ").next().unwrap();
    let runs: Vec<&str> = section.lines().filter(|line| line.starts_with("bloomery run ")).collect();
    let [with_key, without] = runs[..] else { panic!("{runs:?}") };
    let keyed = Setup::with_key(SAYS_HELLO, "sk-1").await;
    let scripted = Setup::new(&fs::read_to_string(top.join("docs/examples/model.yaml")).unwrap()).await;
    for (setup, line) in [(&keyed, with_key), (&scripted, without)] {
        setup.write("my-project/src/main.rs", "fn main() {}\n");
        for name in ["cs-tier-1", "sw-dev-agent", "sw-dev-senior"] {
            let template = format!("skill-templates/{name}.yaml");
            setup.write(&format!("bloomery/{template}"), &fs::read_to_string(top.join(&template)).unwrap());
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &line.replace(MODEL, &setup.model.url())]).current_dir(setup.path("bloomery")).env_clear();
        if line == with_key {
            shell.env("OPENAI_API_KEY", "sk-1").env("OPENAI_BASE_URL", setup.url());
        }
        let result = CommandOutput::new(shell.env("PATH", path()).output().await.unwrap());
        result.assert(0, "Succeeded");
        assert!(setup.path("bloomery/memory/sw-dev-agent/skill.yaml").exists());
    }
}

/// Each row of the table names tests that exist.
#[test]
fn every_feature_of_the_older_runtime_has_an_existing_test() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = include_str!("older-runtime.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut tests = 0;
    for row in rows.skip(1) {
        let cited = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in cited.split('`').filter(|part| part.contains(".rs:")) {
            let (file, name) = test.split_once(':').unwrap();
            let text = fs::read_to_string(top.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
            tests += 1;
        }
        assert!(cited.contains(".rs:"), "{row}");
    }
    assert!(tests > 20, "{tests}");
}
