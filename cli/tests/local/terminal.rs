//! Tests of `bloomery run` at a terminal. The program `script` provides the terminal, and passes the typed text on.

use super::setup::{CommandOutput, Setup, TIMEOUT};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A script that asks the user a question, and then answers.
const ASKS: &str = "
conversations:
  - name: asks
    turns:
      - {calls: [{name: ask_user, arguments: {text: \"Whom, \\e[2J please?\", choices: [Jane, Joe]}}]}
      - {say: Hello.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

const RUN: &str = "--skill ./skill.yaml --goal Greet --run-key k-1";

/// A command at a terminal, with its output so far.
pub struct TerminalSession {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl TerminalSession {
    fn new(setup: &Setup, args: &str) -> Self {
        Self::start(setup, &format!("run --model scripted --model-url {} --patience 5 {args}", setup.url()), "jane")
    }

    /// Starts a command at the terminal of a user.
    pub fn start(setup: &Setup, command: &str, person: &str) -> Self {
        let run = format!("exec {} {command}", env!("CARGO_BIN_EXE_bloomery"));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--flush", "--command", &run, "/dev/null"]).current_dir(setup.dir.path());
        command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("USER", person).env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (keyboard, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keyboard, screen, shown: String::new() }
    }

    /// Waits until the terminal shows a new text.
    pub async fn until(&mut self, text: &str) {
        let from = self.shown.len();
        let mut bytes = [0; 4096];
        while !self.shown[from..].contains(text) {
            let read = tokio::time::timeout(TIMEOUT, self.screen.read(&mut bytes)).await;
            let read = read.map_or(0, |read| read.unwrap());
            assert!(read > 0, "{text:?} is not shown:\n{}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    /// Types a text.
    pub async fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).await.unwrap();
        self.keyboard.flush().await.unwrap();
    }

    /// Waits for the end of the command.
    pub async fn ended(mut self) -> CommandOutput {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).await.unwrap();
        self.shown.push_str(&String::from_utf8_lossy(&rest));
        let code = self.child.wait().await.unwrap().code().unwrap_or(-1);
        CommandOutput { code, out: self.shown, err: String::new() }
    }
}

#[tokio::test]
async fn a_question_is_asked_and_answered_at_the_terminal() {
    let setup = Setup::new(ASKS).await;
    let mut session = TerminalSession::new(&setup, RUN);
    session.until("Your answer (number or text): ").await;
    assert!(session.shown.contains("Whom, \\u{1b}[2J please?"), "{}", session.shown);
    session.types("2\n").await;
    session.ended().await.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains(r#""type":"user.replied","data":{"question":"q-1","text":"Joe","by":"jane"}"#), "{log}");
}

#[tokio::test]
async fn a_question_is_asked_again_after_an_interrupt() {
    let setup = Setup::new(ASKS).await;
    let mut session = TerminalSession::new(&setup, RUN);
    session.until("Your answer").await;
    session.types("\u{3}").await;
    session.ended().await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    let mut again = TerminalSession::new(&setup, "--skill greeter --resume k-1");
    again.until("Your answer").await;
    again.types("Jane\n").await;
    again.ended().await.assert(0, "Succeeded");
    assert_eq!(setup.log("greeter/jobs/k-1").iter().filter(|line| line.contains("user.asked")).count(), 1);
}

#[tokio::test]
async fn the_end_of_the_input_parks_the_job() {
    let setup = Setup::new(ASKS).await;
    let mut session = TerminalSession::new(&setup, RUN);
    session.until("Your answer").await;
    // ^D is the end of the input.
    session.types("\u{4}").await;
    session.ended().await.assert(7, "a question waits for an answer");
    let shown = setup.bloomery(&["get", "k-1"]).await;
    shown.assert(0, "Question    Whom, [2J please?\n              1  Jane\n              2  Joe\n");
    shown.assert(0, "Unfinished  Parked: a question waits for an answer");
}

/// A script whose only call needs an approval.
const HELD: &str = "
conversations:
  - name: held
    turns:
      - {calls: [{name: ask_user, arguments: {text: 'Whom?'}}]}
      - {say: Hello.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

const SUPERVISED: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: greeter}
spec:
  problem: {statement: Greet people}
  policy: {approvals: [{toolId: ask_user, action: require_approval, approver: host}]}
";

#[tokio::test]
async fn only_text_typed_after_the_prompt_decides_on_a_held_call() {
    let setup = Setup::new(HELD).await;
    setup.write("skill.yaml", SUPERVISED);
    let mut session = TerminalSession::new(&setup, RUN);
    // A text that is typed before the question is a message, not a decision.
    session.types("yes\n").await;
    session.until("Approve it for host? yes or no, with an optional reason: ").await;
    assert!(session.shown.contains("arguments  {\"text\":\"Whom?\"}"), "{}", session.shown);
    session.types("perhaps\n").await;
    session.until("Type yes or no").await;
    session.types("yes of course\n").await;
    session.until("Your answer: ").await;
    session.types("Jane\n").await;
    session.ended().await.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains(r#""approver":"host","by":"jane","reason":"of course""#), "{log}");
    assert!(log.contains(r#""type":"user.message","data":{"text":"yes","by":"jane"}"#), "{log}");
}

/// A script with a long, slow answer.
const SLOW: &str = "
conversations:
  - name: slow
    turns:
      - {calls: [{name: act}]}
      - {faults: [{slow: 150}], say: Hello to everybody who is here today and reads this long and slow answer.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello to everybody who is here today and reads this long and slow answer.}]
";

/// A shell command that reports the progress of its call, and then waits until the file `go` exists.
pub const REPORTS_PROGRESS: &str = r#"
token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":3,"message":"picking"}}\n' "$token"
while [ ! -e go ]; do sleep 0.05; done
answer '{"content":[{"type":"text","text":"done"}]}'
"#;

#[tokio::test]
async fn the_status_line_shows_the_current_activity() {
    let setup = Setup::new(SLOW).await;
    setup.write("server.sh", super::tools::SERVER);
    setup.write("progress.sh", REPORTS_PROGRESS);
    let mut session = TerminalSession::new(&setup, &format!("{RUN} --mcp-command sh server.sh \". ./progress.sh\""));
    session.until("act: 1 of 3, picking, ").await;
    setup.write("go", "");
    session.until("The model answers: ").await;
    let ended = session.ended().await;
    ended.assert(0, "Succeeded");
    // The status line is erased, so it is in no remaining line.
    let lines = ended.out.lines().map(|line| line.rsplit('\r').next().unwrap_or_default());
    assert!(lines.into_iter().all(|line| !line.contains("^C parks")), "{ended:#?}");
}

#[tokio::test]
async fn an_interrupt_during_an_answer_parks_the_job() {
    let setup = Setup::new(&SLOW.replace("{calls: [{name: act}]}\n      - ", "")).await;
    let mut session = TerminalSession::new(&setup, RUN);
    session.until("The model answers: ").await;
    session.types("\u{3}").await;
    session.ended().await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    TerminalSession::new(&setup, "--resume k-1").ended().await.assert(0, "Succeeded");
}

#[tokio::test]
async fn without_a_terminal_the_model_cannot_ask_questions() {
    let setup = Setup::new(ASKS).await;
    let result = setup.run(&RUN.split(' ').collect::<Vec<_>>()).await;
    result.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains("there is no tool \\\"ask_user\\\"") && !log.contains("user.asked"), "{log}");
}
