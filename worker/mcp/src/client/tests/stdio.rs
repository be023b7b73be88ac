//! Servers that are programs: a shell that speaks the protocol, well or badly.

use super::*;
use crate::Program;
use rstest::rstest;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Answers what a session begins with and lists the tool `act`; `$1` is done where that is called, `$id` is the call's.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
echo "it speaks" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"act","description":"Does act","inputSchema":{"type":"object","properties":{"order":{"type":"string"}}}}]}' ;;
    *'"method":"tools/call"'*) eval "$1" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
  esac
done
"#;

const ANSWERS: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

fn program(argv: &[&str], said: &Said) -> Client {
    let said = said.clone();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let listener: crate::StderrListener = Arc::new(move |line| said.0.lock().unwrap().push(line.to_owned()));
    Client {
        unreachable_retry_period: Duration::ZERO,
        ..Client::program(Program { argv, env, listener }, Redactor::default())
    }
}

fn server(act: &str) -> Client {
    program(&["sh", "-c", SERVER, "sh", act], &Said::default())
}

#[tokio::test]
async fn a_program_lists_and_answers_and_what_it_says_beside_that_is_heard() {
    let said = Said::default();
    let client = program(&["sh", "-c", &format!("printf 'Bienvenue \\340 tous\\n'\n{SERVER}"), "sh", ANSWERS], &said);
    let tools = client.list(PLENTY).await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["act"]);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    client.close().await;
    assert_eq!(*said.0.lock().unwrap(), ["it speaks"]);
}

#[rstest]
#[case::ends("exit 3", "exit status: 3")]
#[case::cut("printf '{\"jsonrpc\"'; exit 0", "the program ended")]
#[case::no_message("echo '{\"no\": \"message\"}'", "it wrote what is no message of MCP")]
#[case::no_utf8(
    r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"d\377ne"}]}}\n' "$id""#,
    "it wrote what cannot be read"
)]
#[case::endless("while :; do printf '%1000s' x; done", "it wrote a line of more than")]
#[tokio::test]
async fn a_call_that_was_written_and_not_answered_is_indeterminate(#[case] act: &str, #[case] why: &str) {
    let outcome = call(&server(act), "act", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(why), "{text}");
}

/// As programs do that were made with the first SDKs in Rust.
#[tokio::test]
async fn a_program_that_ends_at_what_it_does_not_know_is_begun_in_the_older_era() {
    let asked = r#"IFS= read -r first; case $first in *'"method":"initialize"'*) ;; *) echo "what is that?" >&2; exit 1 ;; esac"#;
    let begins = SERVER.replacen("while IFS= read -r line; do", "line=$first; while :; do", 1);
    let begins = begins.replacen("  esac\ndone", "  esac\n  IFS= read -r line || exit 0\ndone", 1);
    let said = Said::default();
    let client = program(&["sh", "-c", &format!("{asked}\n{begins}"), "sh", ANSWERS], &said);
    assert_eq!(client.list(PLENTY).await.unwrap().len(), 1);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    client.close().await;
    assert_eq!(*said.0.lock().unwrap(), ["what is that?", "it speaks"]);
}

#[tokio::test]
async fn a_call_that_is_late_is_indeterminate_and_the_next_is_answered() {
    let act = r#"if [ -e "$0.late" ]; then answer '{"content":[]}'; else : >"$0.late"; fi"#;
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("x");
    let client = program(&["sh", "-c", SERVER, name.to_str().unwrap(), act], &Said::default());
    let late = call_within(&client, "act", "{}", Duration::from_secs(2)).await;
    assert!(matches!(late, CallOutcome::Indeterminate { .. }), "{late:?}");
    let next = call(&client, "act", "{}").await;
    assert!(matches!(next, CallOutcome::Completed { .. }), "{next:?}");
}

#[tokio::test]
async fn an_error_in_another_form_is_an_answer() {
    let act = r#"printf '{"jsonrpc":"2.0","id":%s,"error":"sold out"}\n' "$id""#;
    let outcome = call(&server(act), "act", "{}").await;
    assert_eq!(outcome, failed("The server refused the call: sold out (code -32603)."));
}

#[tokio::test]
async fn a_result_that_is_not_as_mcp_says_is_an_answer() {
    let act = r#"answer '{"content":[{"type":"hologram"},{"type":"text","text":"a\ud800"}]}'"#;
    let expected = "[content of the type `hologram`, which MCP does not have, is left out]\na\u{fffd}";
    assert_eq!(call(&server(act), "act", "{}").await, completed(expected));
}

#[tokio::test]
async fn a_program_that_begins_no_session_is_told_so_without_words_of_http() {
    let begins = SERVER.replacen(
        r#"'{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}'"#,
        "'{\"x\":1}'",
        1,
    );
    let error = program(&["sh", "-c", &begins, "sh", ANSWERS], &Said::default()).list(PLENTY).await.unwrap_err();
    assert!(error.to_string().contains("it does not speak MCP over its standard input and output"), "{error}");
}

#[rstest]
#[case::absent(&["/no/such/program"], "cannot be started", true)]
#[case::no_program(&["/etc/passwd"], "cannot be started", true)]
#[case::deaf(&["sh", "-c", "exec <&-; sleep 60"], "its input cannot be written", false)]
#[case::gone(&["sh", "-c", "echo one >&2; sleep 600 >/dev/null & exit 7"], "the program ended (exit status: 7) and said last: one", true)]
#[case::gone_without_a_word(&["sh", "-c", "read -r line; exit 0"], "the program ended (exit status: 0)", true)]
#[case::killed(&["sh", "-c", "echo a >&2; echo b >&2; echo >&2; printf 'c\\033[2J' >&2; echo >&2; echo d >&2; kill -9 $$"], "said last: b / c [2J / d", true)]
#[case::talks_on(&["sh", "-c", "echo '{}'; cat >/dev/null"], "it wrote what is no message of MCP", false)]
#[case::no_name(&[], "it has no name", true)]
#[tokio::test]
async fn a_call_that_no_program_could_take_has_failed(
    #[case] argv: &[&str],
    #[case] why: &str,
    #[case] is_final: bool,
) {
    let client = program(argv, &Said::default());
    let outcome = call_within(&client, "act", "{}", Duration::from_secs(20)).await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The call was not sent") && text.contains(why), "{text}");
    let error = client.list(PLENTY).await.unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(matches!(error, Error::ProgramFailed { .. }), is_final, "{error}");
    assert!(is_final || matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn a_program_inherits_nothing_and_takes_all_that_it_started_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (env, child) = (dir.path().join("env"), dir.path().join("child"));
    let act = format!("env >{}; sleep 600 & echo $! >{}; {ANSWERS}", env.display(), child.display());
    let client = server(&act);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    assert!(!std::fs::read_to_string(env).unwrap().contains("CARGO"));
    let child = std::fs::read_to_string(child).unwrap();
    // Dead, it may wait to be collected, by whoever takes orphans here.
    let is_alive = || {
        let stat = std::fs::read_to_string(Path::new("/proc").join(child.trim()).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(is_alive());
    client.close().await;
    while is_alive() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn what_is_shown_of_a_program_is_its_name() {
    let client = program(&["server", "--token", "sk-123"], &Said::default());
    assert_eq!(&*client.url, "`server`");
}
