//! A person at a real terminal: `script` gives one to the run, and passes on what is typed.

use super::stand::{PATIENCE, Ran, Stand};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Asks, and then answers.
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

/// A run at a terminal: what stands on it, and the keyboard.
pub struct Seat {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl Seat {
    fn new(stand: &Stand, args: &str) -> Self {
        Self::of(stand, &format!("run --model scripted --model-url {} --patience 5 {args}", stand.url()), "jane")
    }

    /// A command at a terminal at which this person sits.
    pub fn of(stand: &Stand, command: &str, person: &str) -> Self {
        let run = format!("exec {} {command}", env!("CARGO_BIN_EXE_bloomery"));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--flush", "--command", &run, "/dev/null"]).current_dir(stand.dir.path());
        command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("USER", person).env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (keyboard, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keyboard, screen, shown: String::new() }
    }

    /// Waits until the terminal shows a text that it did not show before.
    pub async fn until(&mut self, text: &str) {
        let from = self.shown.len();
        let mut bytes = [0; 4096];
        while !self.shown[from..].contains(text) {
            let read = tokio::time::timeout(PATIENCE, self.screen.read(&mut bytes)).await;
            let read = read.map_or(0, |read| read.unwrap());
            assert!(read > 0, "{text:?} is not shown:\n{}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    pub async fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).await.unwrap();
        self.keyboard.flush().await.unwrap();
    }

    pub async fn ended(mut self) -> Ran {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).await.unwrap();
        self.shown.push_str(&String::from_utf8_lossy(&rest));
        let code = self.child.wait().await.unwrap().code().unwrap_or(-1);
        Ran { code, out: self.shown, err: String::new() }
    }
}

#[tokio::test]
async fn a_question_is_asked_at_the_terminal_and_what_is_typed_is_its_answer() {
    let stand = Stand::new(ASKS).await;
    let mut seat = Seat::new(&stand, RUN);
    seat.until("Your answer (number or text): ").await;
    assert!(seat.shown.contains("Whom, \\u{1b}[2J please?"), "{}", seat.shown);
    seat.types("2\n").await;
    seat.ended().await.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains(r#""type":"user.replied","data":{"question":"q-1","text":"Joe","by":"jane"}"#), "{log}");
}

#[tokio::test]
async fn who_interrupts_at_a_question_is_asked_it_again_later() {
    let stand = Stand::new(ASKS).await;
    let mut seat = Seat::new(&stand, RUN);
    seat.until("Your answer").await;
    seat.types("\u{3}").await;
    seat.ended().await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    let mut again = Seat::new(&stand, "--skill greeter --resume k-1");
    again.until("Your answer").await;
    again.types("Jane\n").await;
    again.ended().await.assert(0, "Succeeded");
    assert_eq!(stand.log("greeter/jobs/k-1").iter().filter(|line| line.contains("user.asked")).count(), 1);
}

#[tokio::test]
async fn who_leaves_the_terminal_parks_the_job() {
    let stand = Stand::new(ASKS).await;
    let mut seat = Seat::new(&stand, RUN);
    seat.until("Your answer").await;
    // The end of the input, as a terminal has it.
    seat.types("\u{4}").await;
    seat.ended().await.assert(7, "a question waits for an answer");
    let stands = stand.bloomery(&["get", "k-1"]).await;
    stands.assert(0, "Question    Whom, [2J please?\n              1  Jane\n              2  Joe\n");
    stands.assert(0, "Unfinished  Parked: a question waits for an answer");
}

/// Everything that asks for the greeting to be written down is the author's to approve.
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
async fn a_held_call_is_decided_at_the_terminal_and_what_was_typed_before_decides_nothing() {
    let stand = Stand::new(HELD).await;
    stand.write("skill.yaml", SUPERVISED);
    let mut seat = Seat::new(&stand, RUN);
    // Typed ahead of any question: a message, and no approval.
    seat.types("yes\n").await;
    seat.until("Approve it for host? yes or no, with an optional reason: ").await;
    assert!(seat.shown.contains("arguments  {\"text\":\"Whom?\"}"), "{}", seat.shown);
    seat.types("perhaps\n").await;
    seat.until("Type yes or no").await;
    seat.types("yes of course\n").await;
    seat.until("Your answer: ").await;
    seat.types("Jane\n").await;
    seat.ended().await.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains(r#""approver":"host","by":"jane","reason":"of course""#), "{log}");
    assert!(log.contains(r#""type":"user.message","data":{"text":"yes","by":"jane"}"#), "{log}");
}

/// A long answer that comes slowly.
const SLOW: &str = "
conversations:
  - name: slow
    turns:
      - {calls: [{name: act}]}
      - {faults: [{slow: 150}], say: Hello to everybody who is here today and looks on while this is said.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello to everybody who is here today and looks on while this is said.}]
";

/// Tells how far its call is, and goes on once a file is there.
pub const TELLS: &str = r#"
token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":3,"message":"picking"}}\n' "$token"
while [ ! -e go ]; do sleep 0.05; done
answer '{"content":[{"type":"text","text":"done"}]}'
"#;

#[tokio::test]
async fn one_line_says_what_is_being_done_while_it_is_done() {
    let stand = Stand::new(SLOW).await;
    stand.write("server.sh", super::tools::SERVER);
    stand.write("tells.sh", TELLS);
    let mut seat = Seat::new(&stand, &format!("{RUN} --mcp-command sh server.sh \". ./tells.sh\""));
    seat.until("act: 1 of 3, picking, ").await;
    stand.write("go", "");
    seat.until("The model answers: ").await;
    let ended = seat.ended().await;
    ended.assert(0, "Succeeded");
    // It is taken back, and stands in no line that stays.
    let lines = ended.out.lines().map(|line| line.rsplit('\r').next().unwrap_or_default());
    assert!(lines.into_iter().all(|line| !line.contains("^C parks")), "{ended:#?}");
}

#[tokio::test]
async fn who_interrupts_an_answer_on_its_way_parks_the_job() {
    let stand = Stand::new(&SLOW.replace("{calls: [{name: act}]}\n      - ", "")).await;
    let mut seat = Seat::new(&stand, RUN);
    seat.until("The model answers: ").await;
    seat.types("\u{3}").await;
    seat.ended().await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    Seat::new(&stand, "--resume k-1").ended().await.assert(0, "Succeeded");
}

#[tokio::test]
async fn where_there_is_no_terminal_a_held_call_parks_and_questions_are_not_offered() {
    let stand = Stand::new(ASKS).await;
    let ran = stand.run(&RUN.split(' ').collect::<Vec<_>>()).await;
    ran.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1").join("\n");
    assert!(log.contains("there is no tool \\\"ask_user\\\"") && !log.contains("user.asked"), "{log}");
}
