//! The examples of docs/how-to/run-locally.md and of the README, and the table of the older runtime.

use super::stand::{Ran, SAYS_HELLO, Stand};
use bloomery_testkit::orders;
use std::fs;
use std::path::Path;
use tokio::process::Command;

/// Where the page says that the scripted model and the orders' server listen.
const MODEL: &str = "http://127.0.0.1:8087";
const ORDERS: &str = "http://127.0.0.1:8088";

/// Where `bloomery` and other programs are.
fn path() -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_bloomery")).parent().unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

/// Every `console` block is run in the order of the page: `$ command`, then what it prints to stdout.
#[tokio::test]
async fn the_examples_of_the_page_are_true() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("docs/how-to/run-locally.md")).unwrap();
    let stand = Stand::new(&fs::read_to_string(top.join("docs/examples/model.yaml")).unwrap()).await;
    for dir in ["docs/examples", "skill-templates"] {
        for entry in fs::read_dir(top.join(dir)).unwrap() {
            let file = entry.unwrap();
            let name = format!("{dir}/{}", file.file_name().to_str().unwrap());
            stand.write(&name, &fs::read_to_string(file.path()).unwrap());
        }
    }
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let mut run = 0;
    for block in page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (command, shown) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let command = command.replace(MODEL, &stand.model.url()).replace(ORDERS, &orders.url());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(stand.dir.path()).env_clear().env("PATH", path());
        let output = shell.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown, "{command}: {said}");
        run += 1;
    }
    assert_eq!(run, 9);
}

/// What README.md tells a newcomer to type, with a key and without one.
#[tokio::test]
async fn the_runs_of_the_readme_are_true() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("README.md")).unwrap();
    let section = page.split("## Without a cluster").nth(1).unwrap().split("\n## ").next().unwrap();
    let runs: Vec<&str> = section.lines().filter(|line| line.starts_with("bloomery run ")).collect();
    let [with_key, without] = runs[..] else { panic!("{runs:?}") };
    let keyed = Stand::with_key(SAYS_HELLO, "sk-1").await;
    let scripted = Stand::new(&fs::read_to_string(top.join("docs/examples/model.yaml")).unwrap()).await;
    for (stand, line) in [(&keyed, with_key), (&scripted, without)] {
        stand.write("my-project/src/main.rs", "fn main() {}\n");
        for name in ["cs-tier-1", "sw-dev-agent", "sw-dev-senior"] {
            let template = format!("skill-templates/{name}.yaml");
            stand.write(&format!("bloomery/{template}"), &fs::read_to_string(top.join(&template)).unwrap());
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &line.replace(MODEL, &stand.model.url())]).current_dir(stand.path("bloomery")).env_clear();
        if line == with_key {
            shell.env("OPENAI_API_KEY", "sk-1").env("OPENAI_BASE_URL", stand.url());
        }
        let ran = Ran::of(shell.env("PATH", path()).output().await.unwrap());
        ran.assert(0, "Succeeded");
        assert!(stand.path("bloomery/memory/sw-dev-agent/skill.yaml").exists());
    }
}

/// Each row of the table names tests that exist.
#[test]
fn what_the_page_says_of_the_older_runtime_is_tested() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = include_str!("older-runtime.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut tests = 0;
    for row in rows.skip(1) {
        let told = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in told.split('`').filter(|part| part.contains(".rs:")) {
            let (file, name) = test.split_once(':').unwrap();
            let text = fs::read_to_string(top.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
            tests += 1;
        }
        assert!(told.contains(".rs:"), "{row}");
    }
    assert!(tests > 20, "{tests}");
}
