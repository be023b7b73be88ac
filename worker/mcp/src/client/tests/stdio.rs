//! Tests of servers that are programs. Each program is a shell script.

use super::*;
use crate::Program;
use rstest::rstest;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A server of the older era with one tool, `act`. Calling the tool runs the commands in `$1`. `$id` is the id of the call.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
echo "started" >&2
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

/// The command that answers a call with the text `done`.
const ANSWER_DONE: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

/// The lines of standard error.
#[derive(Clone, Default)]
struct StderrLines(Arc<Mutex<Vec<String>>>);

fn program(argv: &[&str], stderr: &StderrLines) -> Client {
    let stderr = stderr.clone();
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let listener: crate::StderrListener = Arc::new(move |line| stderr.0.lock().unwrap().push(line.to_owned()));
    Client {
        unreachable_retry_period: Duration::ZERO,
        ..Client::program(Program { argv, env, listener }, Redactor::default())
    }
}

fn server(act: &str) -> Client {
    program(&["sh", "-c", SERVER, "sh", act], &StderrLines::default())
}

#[tokio::test]
async fn a_program_is_called_and_its_stderr_is_not_shown() {
    let stderr = StderrLines::default();
    let client =
        program(&["sh", "-c", &format!("printf 'Bienvenue \\340 tous\\n'\n{SERVER}"), "sh", ANSWER_DONE], &stderr);
    let tools = client.list(LONG_TIMEOUT).await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["act"]);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    client.close().await;
    assert!(stderr.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_stderr_of_a_program_is_shown_when_something_fails() {
    let stderr = StderrLines::default();
    let client = program(&["sh", "-c", SERVER, "sh", "echo failing >&2; exit 3"], &stderr);
    assert!(matches!(call(&client, "act", "{}").await, CallOutcome::Indeterminate { .. }));
    assert_eq!(*stderr.0.lock().unwrap(), ["started", "failing"]);
}

/// Loggers such as pino write JSON to standard output.
#[rstest]
#[case::a_log_line(r#"{"level":30,"time":1,"pid":7,"msg":"calling"}"#)]
#[case::a_log_line_with_a_method(r#"{"level":30,"id":1,"method":"tools/call","msg":"calling"}"#)]
#[case::a_logged_message(r#"{"level":20,"sent":{"jsonrpc":"2.0","id":1,"result":{}}}"#)]
#[case::an_object_of_javascript("{ level: 30 }")]
#[case::a_text("calling")]
#[tokio::test]
async fn a_line_that_is_not_a_message_is_skipped(#[case] line: &str) {
    let act = format!("echo '{line}'; {ANSWER_DONE}");
    assert_eq!(call(&server(&act), "act", "{}").await, completed("done"));
}

#[rstest]
#[case::ends("exit 3", "exit status: 3")]
#[case::cut("printf '{\"jsonrpc\"'; exit 0", "the program ended")]
#[case::a_malformed_message("echo '{\"jsonrpc\": \"2.0\"}'", "it wrote a line that is not an MCP message")]
#[case::a_cut_message("echo '{\"jsonrpc\": \"2.0\", \"id\"'", "it wrote a line that is not an MCP message")]
#[case::an_answer_of_another_protocol(
    "echo '{\"id\": 1, \"result\": {}}'",
    "it wrote a line that is not an MCP message"
)]
#[case::not_utf8(
    r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"d\377ne"}]}}\n' "$id""#,
    "it wrote a line that is not UTF-8"
)]
#[case::endless("while :; do printf '%1000s' x; done", "it wrote a line of more than")]
#[tokio::test]
async fn a_call_that_was_written_and_not_answered_is_indeterminate(#[case] act: &str, #[case] reason: &str) {
    let outcome = call(&server(act), "act", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(reason), "{text}");
}

/// Programs that use the first SDKs in Rust behave like this. They never receive a request of the newer era.
#[tokio::test]
async fn a_program_that_ends_on_an_unknown_request_is_started_once() {
    let ends_on_unknown = r#"IFS= read -r first; case $first in *'"method":"initialize"'*) ;; *) echo "what is that?" >&2; exit 1 ;; esac"#;
    let server = SERVER.replacen("while IFS= read -r line; do", "line=$first; while :; do", 1);
    let server = server.replacen("  esac\ndone", "  esac\n  IFS= read -r line || exit 0\ndone", 1);
    let stderr = StderrLines::default();
    let client = program(&["sh", "-c", &format!("{ends_on_unknown}\n{server}"), "sh", ANSWER_DONE], &stderr);
    assert_eq!(client.list(LONG_TIMEOUT).await.unwrap().len(), 1);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    client.close().await;
    assert!(stderr.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_started_once() {
    let stderr = StderrLines::default();
    let client = program(&["sh", "-c", "echo started >&2; exit 1"], &stderr);
    assert!(matches!(client.list(LONG_TIMEOUT).await, Err(Error::ProgramFailed { .. })));
    assert_eq!(*stderr.0.lock().unwrap(), ["started"]);
}

/// A program that only speaks the newer era is started again, and only once: the client remembers the era.
#[tokio::test]
async fn a_program_that_refuses_the_older_era_is_started_again_in_the_newer_era() {
    let server = SERVER
        .replacen(
            r#"*'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;"#,
            r#"*'"method":"server/discover"'*) answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;"#,
            1,
        )
        .replacen(r#"answer '{"tools""#, r#"answer '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools""#, 1);
    assert!(server.contains("server/discover") && server.contains("cacheScope"));
    let dir = tempfile::tempdir().unwrap();
    let starts = dir.path().join("starts");
    let counted = format!("echo >>{}\n{server}", starts.display());
    let act = r#"answer '{"resultType":"complete","content":[{"type":"text","text":"done"}]}'"#;
    let client = program(&["sh", "-c", &counted, "sh", act], &StderrLines::default());
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    client.close().await;
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    // Refused once, then a session of the newer era, and another.
    assert_eq!(std::fs::read_to_string(starts).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_call_that_times_out_is_indeterminate_and_the_next_succeeds() {
    let act = r#"if [ -e "$0.late" ]; then answer '{"content":[]}'; else : >"$0.late"; fi"#;
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("x");
    let client = program(&["sh", "-c", SERVER, name.to_str().unwrap(), act], &StderrLines::default());
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
async fn a_result_that_does_not_conform_to_mcp_is_an_answer() {
    let act = r#"answer '{"content":[{"type":"hologram"},{"type":"text","text":"a\ud800"}]}'"#;
    let expected = "[content of the type `hologram`, which MCP does not define, is left out]\na\u{fffd}";
    assert_eq!(call(&server(act), "act", "{}").await, completed(expected));
}

#[tokio::test]
async fn the_error_of_a_program_that_begins_no_session_does_not_mention_http() {
    let server = SERVER.replacen(
        r#"'{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}'"#,
        "'{\"x\":1}'",
        1,
    );
    let error = program(&["sh", "-c", &server, "sh", ANSWER_DONE], &StderrLines::default())
        .list(LONG_TIMEOUT)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it does not speak MCP over its standard input and output"), "{error}");
}

#[rstest]
#[case::absent(&["/no/such/program"], "cannot be started", true)]
#[case::not_executable(&["/etc/passwd"], "cannot be started", true)]
#[case::ends(&["sh", "-c", "echo one >&2; sleep 600 >/dev/null & exit 7"], "the program ended (exit status: 7); the end of its stderr: one", true)]
#[case::ends_silently(&["sh", "-c", "read -r line; exit 0"], "the program ended (exit status: 0)", true)]
#[case::killed(&["sh", "-c", "echo a >&2; echo b >&2; echo >&2; printf 'c\\033[2J' >&2; echo >&2; echo d >&2; kill -9 $$"], "the end of its stderr: b / c [2J / d", true)]
#[case::writes_no_message(&["sh", "-c", "echo '{\"jsonrpc\":1}'; cat >/dev/null"], "it wrote a line that is not an MCP message", false)]
#[case::no_command_line(&[], "its command line is empty", true)]
#[tokio::test]
async fn a_call_fails_if_the_program_cannot_receive_it(
    #[case] argv: &[&str],
    #[case] reason: &str,
    #[case] is_final: bool,
) {
    let client = program(argv, &StderrLines::default());
    let outcome = call_within(&client, "act", "{}", Duration::from_secs(20)).await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The call was not sent") && text.contains(reason), "{text}");
    let error = client.list(LONG_TIMEOUT).await.unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
    assert_eq!(matches!(error, Error::ProgramFailed { .. }), is_final, "{error}");
    assert!(is_final || matches!(error, Error::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn a_program_inherits_no_environment_and_its_child_processes_end_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (env, child) = (dir.path().join("env"), dir.path().join("child"));
    let act = format!("env >{}; sleep 600 & echo $! >{}; {ANSWER_DONE}", env.display(), child.display());
    let client = server(&act);
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    assert!(!std::fs::read_to_string(env).unwrap().contains("CARGO"));
    let child = std::fs::read_to_string(child).unwrap();
    // A killed process may stay a zombie until its new parent collects it.
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

/// The call has happened, so it is completed, and the program goes on.
#[rstest]
#[case::id_first(
    r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%70000s"}]}}\n' "$id" x"#
)]
#[case::result_first(
    r#"printf '{"result":{"content":[{"type":"text","text":"%70000s"}]},"jsonrpc":"2.0","id":%s}\n' x "$id""#
)]
#[tokio::test]
async fn a_result_beyond_the_limit_completes_the_call(#[case] act: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("called");
    let act = format!("if [ -e {0} ]; then {ANSWER_DONE}; else : >{0}; {act}; fi", mark.display());
    let client = server(&act).with_max_result_bytes(65_536);
    let outcome = call(&client, "act", "{}").await;
    let CallOutcome::Unread { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(" bytes, and the limit is 65536, so it was not read"), "{text}");
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
}

#[tokio::test]
async fn a_call_to_a_program_that_closed_its_input_fails() {
    let client = server(&format!("exec <&-; {ANSWER_DONE}; sleep 600"));
    assert_eq!(call(&client, "act", "{}").await, completed("done"));
    let outcome = call(&client, "act", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("its input cannot be written"), "{text}");
}

#[test]
fn the_name_of_a_program_does_not_contain_its_arguments() {
    let client = program(&["server", "--token", "sk-123"], &StderrLines::default());
    assert_eq!(&*client.name, "`server`");
}
