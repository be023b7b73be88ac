//! What is being done, in words that fit one line.

use crate::summary;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::ToolProgress;
use bloomery_worker::progress::Progress;
use std::time::Instant;

/// What is being done.
#[derive(Debug)]
pub struct Activity {
    began: Instant,
    /// How the conversation stood when it was told of last.
    stands: Option<Stands>,
    act: Act,
    /// Since when.
    since: Instant,
    waiting: Option<String>,
}

#[derive(Debug)]
struct Stands {
    phase: String,
    /// The main loop's requests so far.
    asked: u32,
    tool_calls: u32,
    tokens: u64,
}

/// What goes on within a step.
#[derive(Debug, PartialEq)]
enum Act {
    Nothing,
    /// A model is asked, and so many bytes of its answer are there.
    Asking(Stage, usize),
    /// Tools are called; what their server told last.
    Calling(Vec<String>, Option<String>),
}

impl Activity {
    /// Nothing yet.
    pub fn new(now: Instant) -> Self {
        Self { began: now, stands: None, act: Act::Nothing, since: now, waiting: None }
    }

    /// Takes up how the conversation stands: where it waits for people, what went on before is over.
    pub fn tell(&mut self, projection: &Projection, now: Instant) {
        let usage = &projection.usage;
        self.stands = Some(Stands {
            phase: projection.phase.to_string(),
            asked: usage.llm_calls.plan,
            tool_calls: usage.tool_calls,
            tokens: summary::tokens(usage),
        });
        // What is under way may have begun before this is told.
        if self.act == Act::Nothing || !matches!(projection.phase, Phase::Running | Phase::Finalizing) {
            self.turn(Act::Nothing, now);
        }
    }

    /// Takes up what is waited for.
    pub fn wait(&mut self, waiting: Option<&ExternalWait>) {
        self.waiting = waiting.map(|waiting| match waiting {
            ExternalWait::SecretMissing { key, .. } => format!("Waiting for the key {key}"),
            ExternalWait::McpUnavailable { .. } => "Waiting for the MCP server".to_owned(),
            ExternalWait::ModelUnavailable { .. } => "Waiting for the model".to_owned(),
        });
    }

    /// Takes up what goes on.
    pub fn see(&mut self, progress: Progress, now: Instant) {
        match (progress, &mut self.act) {
            (Progress::Asked(stage), _) => {
                self.waiting = None;
                self.turn(Act::Asking(stage, 0), now);
            }
            (Progress::Answering(more), Act::Asking(_, bytes)) => *bytes = more,
            (Progress::Called(tool), Act::Calling(tools, _)) => tools.push(tool),
            (Progress::Called(tool), _) => self.turn(Act::Calling(vec![tool], None), now),
            (Progress::ToolProgress(told), Act::Calling(_, said)) => *said = Some(words(&told)),
            (Progress::Over(tool), Act::Calling(tools, said)) => {
                if let Some(at) = tools.iter().position(|under_way| *under_way == tool) {
                    tools.remove(at);
                }
                *said = None;
                if tools.is_empty() {
                    self.turn(Act::Nothing, now);
                }
            }
            _ => {}
        }
    }

    fn turn(&mut self, act: Act, now: Instant) {
        (self.act, self.since) = (act, now);
    }

    /// The line.
    pub fn line(&self, now: Instant) -> String {
        let all = now.duration_since(self.began).as_secs();
        let Some(stands) = &self.stands else {
            let doing = self.waiting.as_deref().unwrap_or("Starting");
            return format!("{doing} ({all} s; ^C parks)");
        };
        let Stands { asked, tool_calls, tokens, .. } = stands;
        // How it stands is told before the request is counted.
        let step = match self.act {
            Act::Asking(Stage::Plan, _) => asked.saturating_add(1),
            _ => (*asked).max(1),
        };
        let seconds = now.duration_since(self.since).as_secs();
        format!(
            "{}, {seconds} s (step {step}, {tool_calls} tool calls, {tokens} tokens, {all} s; ^C parks)",
            self.what(stands)
        )
    }

    fn what(&self, stands: &Stands) -> String {
        if let Some(waiting) = &self.waiting {
            return waiting.clone();
        }
        match &self.act {
            Act::Nothing => stands.phase.clone(),
            Act::Asking(stage, 0) => format!("{} is asked", asked(*stage)),
            Act::Asking(stage, bytes) => format!("{} answers: {}", asked(*stage), size(*bytes)),
            Act::Calling(tools, None) => tools.join(", "),
            Act::Calling(tools, Some(said)) => format!("{}: {said}", tools.join(", ")),
        }
    }
}

fn asked(stage: Stage) -> &'static str {
    match stage {
        Stage::Intent => "The model, what is meant,",
        Stage::Selection => "The model, which tools,",
        Stage::Plan => "The model",
        Stage::Finalization => "The model, as judge,",
        Stage::Polish => "The model, as editor,",
    }
}

fn size(bytes: usize) -> String {
    if bytes < 1000 { format!("{bytes} bytes") } else { format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100) }
}

fn words(told: &ToolProgress) -> String {
    let far = match (told.progress, told.total) {
        (Some(progress), Some(total)) => Some(format!("{progress} of {total}")),
        (Some(progress), None) => Some(progress.to_string()),
        (None, _) => None,
    };
    let parts: Vec<String> = far.into_iter().chain(told.message.clone()).collect();
    parts.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::{Gates, LogPosition, Usage};
    use std::time::Duration;

    pub fn projection() -> Projection {
        let mut usage = Usage { tool_calls: 2, input_tokens: 100, output_tokens: 20, ..Usage::default() };
        usage.llm_calls.plan = 3;
        Projection {
            phase: Phase::Running,
            outcome: None,
            result: None,
            gates: Gates::default(),
            workflows: Vec::new(),
            waiting_for: None,
            tool_names: Vec::new(),
            replies_heard: 0,
            stray_replies: Vec::new(),
            remarks: Vec::new(),
            usage,
            log: LogPosition { path: "jobs/k".into(), events: 1, head: Digest::of_bytes(b"") },
        }
    }

    #[test]
    fn the_line_says_what_is_done_how_far_it_is_and_for_how_long() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut doing = Activity::new(began);
        assert_eq!(doing.line(after(1)), "Starting (1 s; ^C parks)");
        doing.tell(&projection(), after(2));
        let line = |doing: &Activity, step: u32| {
            let rest = format!("(step {step}, 2 tool calls, 120 tokens, 9 s; ^C parks)");
            let line = doing.line(after(9));
            line.strip_suffix(&rest).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        assert_eq!(line(&doing, 3), "Running, 7 s ");
        doing.see(Progress::Asked(Stage::Plan), after(3));
        assert_eq!(line(&doing, 4), "The model is asked, 6 s ");
        doing.see(Progress::Answering(999), after(4));
        assert_eq!(line(&doing, 4), "The model answers: 999 bytes, 6 s ");
        doing.see(Progress::Answering(12_345), after(4));
        assert_eq!(line(&doing, 4), "The model answers: 12.3 kB, 6 s ");
        doing.see(Progress::Asked(Stage::Finalization), after(5));
        assert_eq!(line(&doing, 3), "The model, as judge, is asked, 4 s ");
        let mut first = projection();
        first.usage.llm_calls.plan = 0;
        doing.tell(&first, after(5));
        assert_eq!(line(&doing, 1), "The model, as judge, is asked, 4 s ");
        first.phase = Phase::AwaitingReply;
        doing.tell(&first, after(5));
        assert_eq!(line(&doing, 1), "AwaitingReply, 4 s ");
    }

    #[test]
    fn calls_that_are_under_way_are_named_with_what_their_server_tells() {
        let now = Instant::now();
        let mut doing = Activity::new(now);
        doing.tell(&projection(), now);
        let what = |doing: &Activity| doing.line(now).split(" (").next().unwrap().to_owned();
        let told = |progress, message: Option<&str>| {
            let message = message.map(str::to_owned);
            Progress::ToolProgress(ToolProgress { progress, total: Some(10.0), message, level: None })
        };
        doing.see(told(Some(1.0), None), now);
        assert_eq!(what(&doing), "Running, 0 s");
        doing.see(Progress::Called("pack".into()), now);
        doing.see(told(Some(2.5), Some("picking")), now);
        assert_eq!(what(&doing), "pack: 2.5 of 10, picking, 0 s");
        doing.see(Progress::Called("ship".into()), now);
        doing.see(Progress::Over("pack".into()), now);
        assert_eq!(what(&doing), "ship, 0 s");
        doing.see(told(None, Some("loading")), now);
        assert_eq!(what(&doing), "ship: loading, 0 s");
        doing.see(Progress::Over("ship".into()), now);
        assert_eq!(what(&doing), "Running, 0 s");
    }

    #[test]
    fn what_is_waited_for_is_said_until_there_is_an_answer() {
        let now = Instant::now();
        let mut doing = Activity::new(now);
        doing.wait(Some(&ExternalWait::McpUnavailable { message: "refused".into() }));
        assert_eq!(doing.line(now), "Waiting for the MCP server (0 s; ^C parks)");
        doing.tell(&projection(), now);
        doing.wait(Some(&ExternalWait::ModelUnavailable { message: "busy".into() }));
        assert!(doing.line(now).starts_with("Waiting for the model, 0 s"));
        doing.see(Progress::Asked(Stage::Plan), now);
        assert!(doing.line(now).starts_with("The model is asked"));
        doing.wait(Some(&ExternalWait::SecretMissing { name: "llm".into(), key: "token".into() }));
        doing.wait(None);
        assert!(doing.line(now).starts_with("The model is asked"));
    }
}
