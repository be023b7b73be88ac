//! The examples of docs/local.md.

use super::stand::Stand;
use std::fs;
use std::path::Path;
use tokio::process::Command;

/// Where the page says that the scripted model listens.
const ADDRESS: &str = "http://127.0.0.1:8087";

/// Every `console` block is run in the order of the page: `$ command`, then what it prints to stdout.
#[tokio::test]
async fn the_examples_of_the_page_are_true() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("docs/local.md")).unwrap();
    let stand = Stand::new(&fs::read_to_string(top.join("docs/local/model.yaml")).unwrap()).await;
    for dir in ["docs/local", "skill-templates"] {
        for entry in fs::read_dir(top.join(dir)).unwrap() {
            let file = entry.unwrap();
            let name = format!("{dir}/{}", file.file_name().to_str().unwrap());
            stand.write(&name, &fs::read_to_string(file.path()).unwrap());
        }
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_bloomery")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (command, shown) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let command = command.replace(ADDRESS, &stand.model.url());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(stand.dir.path()).env_clear().env("PATH", &path);
        let output = shell.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown, "{command}: {said}");
        run += 1;
    }
    assert_eq!(run, 5);
}
