//! The current activity of a Job, as one line.

use crate::summary;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::ToolProgress;
use bloomery_http::progress::Progress;
use std::time::Instant;

/// The current activity.
#[derive(Debug)]
pub struct Activity {
    began: Instant,
    /// The progress of the conversation at its last report.
    progressed: Option<Progressed>,
    step_now: Step,
    /// The start of the current step.
    since: Instant,
    waiting: Option<String>,
}

#[derive(Debug)]
struct Progressed {
    phase: String,
    /// The requests of the main loop so far.
    asked: u32,
    tool_calls: u32,
    tokens: u64,
}

/// The current step.
#[derive(Debug, PartialEq)]
enum Step {
    Nothing,
    /// A model is asked. So many bytes of its answer were received.
    Asking(Stage, usize),
    /// Tools are called, with the last progress that their server reported.
    Calling(Vec<String>, Option<String>),
}

impl Activity {
    /// Creates an activity without a step.
    pub fn new(now: Instant) -> Self {
        Self { began: now, progressed: None, step_now: Step::Nothing, since: now, waiting: None }
    }

    /// Updates the progress of the conversation. If it waits for people, the current step ends.
    pub fn set_projection(&mut self, projection: &Projection, now: Instant) {
        let usage = &projection.usage;
        self.progressed = Some(Progressed {
            phase: projection.phase.to_string(),
            asked: usage.llm_calls.plan,
            tool_calls: usage.tool_calls,
            tokens: summary::tokens(usage),
        });
        // The current step may have started before this report.
        if self.step_now == Step::Nothing || !matches!(projection.phase, Phase::Running | Phase::Finalizing) {
            self.begin(Step::Nothing, now);
        }
    }

    /// Updates what the Job waits for.
    pub fn set_waiting(&mut self, waiting: Option<&ExternalWait>) {
        self.waiting = waiting.map(|waiting| match waiting {
            ExternalWait::SecretMissing { key, .. } => format!("Waiting for the key {key}"),
            ExternalWait::McpUnavailable { .. } => "Waiting for the MCP server".to_owned(),
            ExternalWait::ModelUnavailable { .. } => "Waiting for the model".to_owned(),
        });
    }

    /// Updates the current step.
    pub fn observe(&mut self, progress: Progress, now: Instant) {
        match (progress, &mut self.step_now) {
            (Progress::ModelRequested(stage), _) => {
                self.waiting = None;
                self.begin(Step::Asking(stage, 0), now);
            }
            (Progress::ModelAnswering(more), Step::Asking(_, bytes)) => *bytes = more,
            (Progress::ToolCalled(tool), Step::Calling(tools, _)) => tools.push(tool),
            (Progress::ToolCalled(tool), _) => self.begin(Step::Calling(vec![tool], None), now),
            (Progress::ToolProgressed(progress), Step::Calling(_, said)) => *said = Some(progress_text(&progress)),
            (Progress::ToolEnded(tool), Step::Calling(tools, said)) => {
                if let Some(at) = tools.iter().position(|under_way| *under_way == tool) {
                    tools.remove(at);
                }
                *said = None;
                if tools.is_empty() {
                    self.begin(Step::Nothing, now);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, step_now: Step, now: Instant) {
        (self.step_now, self.since) = (step_now, now);
    }

    /// Returns the line.
    pub fn line(&self, now: Instant) -> String {
        let all = now.duration_since(self.began).as_secs();
        let Some(progressed) = &self.progressed else {
            let activity = self.waiting.as_deref().unwrap_or("Starting");
            return format!("{activity} ({all} s; ^C parks)");
        };
        let Progressed { asked, tool_calls, tokens, .. } = progressed;
        // A request is counted only after its answer.
        let step = match self.step_now {
            Step::Asking(Stage::Plan, _) => asked.saturating_add(1),
            _ => (*asked).max(1),
        };
        let seconds = now.duration_since(self.since).as_secs();
        format!(
            "{}, {seconds} s (step {step}, {tool_calls} tool calls, {tokens} tokens, {all} s; ^C parks)",
            self.description(progressed)
        )
    }

    fn description(&self, progressed: &Progressed) -> String {
        if let Some(waiting) = &self.waiting {
            return waiting.clone();
        }
        match &self.step_now {
            Step::Nothing => progressed.phase.clone(),
            Step::Asking(stage, 0) => format!("{} is asked", stage_name(*stage)),
            Step::Asking(stage, bytes) => format!("{} answers: {}", stage_name(*stage), size(*bytes)),
            Step::Calling(tools, None) => tools.join(", "),
            Step::Calling(tools, Some(said)) => format!("{}: {said}", tools.join(", ")),
        }
    }
}

fn stage_name(stage: Stage) -> &'static str {
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

fn progress_text(progress: &ToolProgress) -> String {
    let far = match (progress.progress, progress.total) {
        (Some(progress), Some(total)) => Some(format!("{progress} of {total}")),
        (Some(progress), None) => Some(progress.to_string()),
        (None, _) => None,
    };
    let parts: Vec<String> = far.into_iter().chain(progress.message.clone()).collect();
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
        let mut activity = Activity::new(began);
        assert_eq!(activity.line(after(1)), "Starting (1 s; ^C parks)");
        activity.set_projection(&projection(), after(2));
        let line = |activity: &Activity, step: u32| {
            let rest = format!("(step {step}, 2 tool calls, 120 tokens, 9 s; ^C parks)");
            let line = activity.line(after(9));
            line.strip_suffix(&rest).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        assert_eq!(line(&activity, 3), "Running, 7 s ");
        activity.observe(Progress::ModelRequested(Stage::Plan), after(3));
        assert_eq!(line(&activity, 4), "The model is asked, 6 s ");
        activity.observe(Progress::ModelAnswering(999), after(4));
        assert_eq!(line(&activity, 4), "The model answers: 999 bytes, 6 s ");
        activity.observe(Progress::ModelAnswering(12_345), after(4));
        assert_eq!(line(&activity, 4), "The model answers: 12.3 kB, 6 s ");
        activity.observe(Progress::ModelRequested(Stage::Finalization), after(5));
        assert_eq!(line(&activity, 3), "The model, as judge, is asked, 4 s ");
        let mut first = projection();
        first.usage.llm_calls.plan = 0;
        activity.set_projection(&first, after(5));
        assert_eq!(line(&activity, 1), "The model, as judge, is asked, 4 s ");
        first.phase = Phase::AwaitingReply;
        activity.set_projection(&first, after(5));
        assert_eq!(line(&activity, 1), "AwaitingReply, 4 s ");
    }

    #[test]
    fn calls_that_are_under_way_are_named_with_what_their_server_tells() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        activity.set_projection(&projection(), now);
        let what = |activity: &Activity| activity.line(now).split(" (").next().unwrap().to_owned();
        let told = |progress, message: Option<&str>| {
            let message = message.map(str::to_owned);
            Progress::ToolProgressed(ToolProgress { progress, total: Some(10.0), message, level: None })
        };
        activity.observe(told(Some(1.0), None), now);
        assert_eq!(what(&activity), "Running, 0 s");
        activity.observe(Progress::ToolCalled("pack".into()), now);
        activity.observe(told(Some(2.5), Some("picking")), now);
        assert_eq!(what(&activity), "pack: 2.5 of 10, picking, 0 s");
        activity.observe(Progress::ToolCalled("ship".into()), now);
        activity.observe(Progress::ToolEnded("pack".into()), now);
        assert_eq!(what(&activity), "ship, 0 s");
        activity.observe(told(None, Some("loading")), now);
        assert_eq!(what(&activity), "ship: loading, 0 s");
        activity.observe(Progress::ToolEnded("ship".into()), now);
        assert_eq!(what(&activity), "Running, 0 s");
    }

    #[test]
    fn what_is_waited_for_is_said_until_there_is_an_answer() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        activity.set_waiting(Some(&ExternalWait::McpUnavailable { message: "refused".into() }));
        assert_eq!(activity.line(now), "Waiting for the MCP server (0 s; ^C parks)");
        activity.set_projection(&projection(), now);
        activity.set_waiting(Some(&ExternalWait::ModelUnavailable { message: "busy".into() }));
        assert!(activity.line(now).starts_with("Waiting for the model, 0 s"));
        activity.observe(Progress::ModelRequested(Stage::Plan), now);
        assert!(activity.line(now).starts_with("The model is asked"));
        activity.set_waiting(Some(&ExternalWait::SecretMissing { name: "llm".into(), key: "token".into() }));
        activity.set_waiting(None);
        assert!(activity.line(now).starts_with("The model is asked"));
    }
}
