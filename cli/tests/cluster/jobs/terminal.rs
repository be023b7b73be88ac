//! Tests of commands at a terminal. The program `script` provides the terminal, and passes the typed text on.

use super::api::job_path;
use super::{Setup, with_question};
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The timeout for an expected output.
const OUTPUT_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs a command. For each pair, waits until the terminal shows the first text, and types the second one. Returns the exit code
/// and the output.
async fn type_at_terminal(setup: &Setup, args: &str, dialogue: &[(&str, &str)]) -> (i32, String) {
    let run = format!("exec {} {args}", env!("CARGO_BIN_EXE_bloomery"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", &run, "/dev/null"]);
    command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("TERM", "xterm");
    command.env("KUBECONFIG", setup.home.path().join("config"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = String::new();
    for (text, keys) in dialogue {
        let from = shown.len();
        let mut bytes = [0; 4096];
        while !shown[from..].contains(text) {
            let read = tokio::time::timeout(OUTPUT_TIMEOUT, screen.read(&mut bytes)).await;
            let read = read.map_or(0, |read| read.unwrap());
            assert!(read > 0, "{text:?} is not shown:\n{shown}");
            shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        keyboard.write_all(keys.as_bytes()).await.unwrap();
        keyboard.flush().await.unwrap();
    }
    let mut rest = Vec::new();
    screen.read_to_end(&mut rest).await.unwrap();
    shown.push_str(&String::from_utf8_lossy(&rest));
    (child.wait().await.unwrap().code().unwrap_or(-1), shown)
}

#[tokio::test]
async fn a_user_selects_one_of_several_questions_and_answers_it() {
    let setup = Setup::new().await;
    let mut job = with_question(&[]);
    let second = json!({"id": "q-2", "text": "Is it \u{1b}[2J broken?"});
    job["status"]["waitingFor"]["questions"].as_array_mut().unwrap().push(second);
    setup.api.put(&job_path("refund"), job);
    let result = setup.run(&["reply", "refund", "A-17"]).await;
    assert!(
        result.exit == 2 && result.err.contains("Select one with --question"),
        "without a terminal, the user is not asked: {}",
        result.err
    );
    let dialogue = [
        ("Which question do you answer? ", "q-3\n"),
        ("Type one of: q-1, q-2", "q-2\n"),
        ("Your answer: ", "\n"),
        ("the text is empty", "All of it\n"),
    ];
    let (exit, shown) = type_at_terminal(&setup, "reply refund", &dialogue).await;
    assert_eq!((exit, setup.replies()), (0, json!([{"question": "q-2", "text": "All of it"}])), "{shown}");
    assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
}

#[tokio::test]
async fn only_yes_cancels() {
    let setup = Setup::new().await;
    let (exit, shown) = type_at_terminal(&setup, "cancel refund", &[("Cancel it? yes or no: ", "no\n")]).await;
    assert!(exit == 1 && shown.contains("nothing was cancelled") && setup.api.patches().is_empty(), "{shown}");
    let dialogue = [("Cancel it? yes or no: ", "perhaps\n"), ("Type yes or no.", "yes\n")];
    let (exit, shown) = type_at_terminal(&setup, "cancel refund", &dialogue).await;
    assert!(exit == 0 && shown.contains("refund is being cancelled") && shown.contains("Refund my order"), "{shown}");
    assert_eq!(setup.api.patches().len(), 1);
}

#[tokio::test]
async fn a_terminal_gets_colours() {
    let setup = Setup::new().await;
    let (exit, shown) = type_at_terminal(&setup, "get refund --cluster", &[("Phase", "")]).await;
    assert!(exit == 0 && shown.contains("\u{1b}[1mPhase"), "{shown:?}");
}
