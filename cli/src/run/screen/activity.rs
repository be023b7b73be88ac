//! The current activity of a Job, as the text of the status line.

use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::ToolProgress;
use bloomery_http::progress::Progress;
use std::time::Instant;

/// The current activity of a Job.
#[derive(Debug)]
pub struct Activity {
    /// The start of the run.
    run_started: Instant,
    /// The latest totals of the conversation; `None` before its first projection.
    totals: Option<Totals>,
    step: Step,
    /// The start of the current step.
    step_started: Instant,
    /// A description of the server or secret that the Job waits for, and the reason.
    waiting: Option<(String, String)>,
}

/// The phase and the usage of a conversation.
#[derive(Debug)]
struct Totals {
    phase: String,
    /// The answered requests to the model in the main loop.
    plan_requests: u32,
    tool_calls: u32,
    tokens: u64,
}

/// The current step.
#[derive(Debug, PartialEq)]
enum Step {
    /// No request and no call is in progress.
    Idle,
    /// A request to a model, and the number of bytes of its answer so far.
    Requesting(Stage, usize),
    /// Calls of tools, and the last progress that their server reported.
    Calling(Vec<String>, Option<String>),
}

impl Activity {
    /// Creates an activity without a step.
    pub fn new(now: Instant) -> Self {
        Self { run_started: now, totals: None, step: Step::Idle, step_started: now, waiting: None }
    }

    /// Updates the totals of the conversation. The current step ends if the Job is not running, for example because it waits
    /// for people.
    pub fn set_projection(&mut self, projection: &Projection, now: Instant) {
        let usage = &projection.usage;
        self.totals = Some(Totals {
            phase: projection.phase.to_string(),
            plan_requests: usage.llm_calls.plan,
            tool_calls: usage.tool_calls,
            tokens: usage.tokens(),
        });
        // A request or call in progress is kept, because a projection does not say whether it has ended.
        if self.step == Step::Idle || !matches!(projection.phase, Phase::Running | Phase::Finalizing) {
            self.begin(Step::Idle, now);
        }
    }

    /// Updates the server or secret that the Job waits for.
    pub fn set_waiting(&mut self, waiting: Option<&ExternalWait>) {
        self.waiting = waiting.map(|waiting| match waiting {
            ExternalWait::SecretMissing { name, key, .. } => {
                (format!("Waiting for the key {key}"), format!("it is missing in the Secret {name}"))
            }
            ExternalWait::McpUnavailable { message } => ("Waiting for the MCP server".to_owned(), message.clone()),
            ExternalWait::ModelUnavailable { message } => ("Waiting for the model".to_owned(), message.clone()),
        });
    }

    /// Returns what the Job waits for.
    pub fn waiting(&self) -> Option<&str> {
        self.waiting.as_ref().map(|(what, _)| what.as_str())
    }

    /// Updates the current step after a notification.
    pub fn observe(&mut self, progress: Progress, now: Instant) {
        match (progress, &mut self.step) {
            (Progress::ModelRequested(stage), _) => {
                self.waiting = None;
                self.begin(Step::Requesting(stage, 0), now);
            }
            (Progress::ModelAnswering(received), Step::Requesting(_, bytes)) => *bytes = received,
            (Progress::ToolCalled(tool), Step::Calling(tools, _)) => tools.push(tool),
            (Progress::ToolCalled(tool), _) => self.begin(Step::Calling(vec![tool], None), now),
            (Progress::ToolProgressed(progress), Step::Calling(_, reported)) => {
                *reported = Some(progress_text(&progress));
            }
            (Progress::ToolEnded(tool), Step::Calling(tools, reported)) => {
                if let Some(at) = tools.iter().position(|called| *called == tool) {
                    tools.remove(at);
                }
                *reported = None;
                if tools.is_empty() {
                    self.begin(Step::Idle, now);
                }
            }
            _ => {}
        }
    }

    /// Starts a step.
    fn begin(&mut self, step: Step, now: Instant) {
        (self.step, self.step_started) = (step, now);
    }

    /// Returns the text: the activity, its duration, the totals, and the reason of a wait. A step in the text is a request to the
    /// model in the main loop.
    pub fn line(&self, now: Instant) -> String {
        let reason = self.waiting.as_ref().map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
        self.activity_and_totals(now) + &reason
    }

    fn activity_and_totals(&self, now: Instant) -> String {
        let total_seconds = now.duration_since(self.run_started).as_secs();
        let Some(totals) = &self.totals else {
            let activity = self.waiting().unwrap_or("Starting");
            return format!("{activity} ({total_seconds} s; ^C parks)");
        };
        let Totals { plan_requests, tool_calls, tokens, .. } = totals;
        // A request is counted only after its answer.
        let step = match self.step {
            Step::Requesting(Stage::Plan, _) => plan_requests.saturating_add(1),
            _ => (*plan_requests).max(1),
        };
        let step_seconds = now.duration_since(self.step_started).as_secs();
        format!(
            "{}, {step_seconds} s (step {step}, {tool_calls} tool calls, {tokens} tokens, {total_seconds} s; ^C parks)",
            self.description(totals)
        )
    }

    /// Describes the activity.
    fn description(&self, totals: &Totals) -> String {
        if let Some(waiting) = self.waiting() {
            return waiting.to_owned();
        }
        match &self.step {
            Step::Idle => totals.phase.clone(),
            Step::Requesting(stage, 0) => format!("Waiting for the model{}", stage_note(*stage)),
            Step::Requesting(stage, bytes) => format!("The model{} answers: {}", stage_note(*stage), size(*bytes)),
            Step::Calling(tools, None) => tools.join(", "),
            Step::Calling(tools, Some(reported)) => format!("{}: {reported}", tools.join(", ")),
        }
    }
}

/// Returns a note for a request outside of the main loop.
fn stage_note(stage: Stage) -> &'static str {
    match stage {
        Stage::Plan => "",
        Stage::Intent => " (intent)",
        Stage::Selection => " (tool selection)",
        Stage::Finalization => " (finalization gate)",
        Stage::Polish => " (polish)",
    }
}

/// Formats a number of bytes.
fn size(bytes: usize) -> String {
    if bytes < 1000 { format!("{bytes} bytes") } else { format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100) }
}

/// Formats the progress that a server has reported.
fn progress_text(progress: &ToolProgress) -> String {
    let amount = match (progress.progress, progress.total) {
        (Some(progress), Some(total)) => Some(format!("{progress} of {total}")),
        (Some(progress), None) => Some(progress.to_string()),
        (None, _) => None,
    };
    let parts: Vec<String> = amount.into_iter().chain(progress.message.clone()).collect();
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
            features: Vec::new(),
            workflows: Vec::new(),
            waiting_for: None,
            tool_names: Vec::new(),
            replies_heard: 0,
            stray_replies: Vec::new(),
            remarks: Vec::new(),
            tools_changed: false,
            usage,
            log: LogPosition { path: "jobs/k".into(), events: 1, head: Digest::of_bytes(b"") },
        }
    }

    #[test]
    fn the_line_shows_the_activity_its_progress_and_its_duration() {
        let started = Instant::now();
        let after = |seconds| started + Duration::from_secs(seconds);
        let mut activity = Activity::new(started);
        assert_eq!(activity.line(after(1)), "Starting (1 s; ^C parks)");
        activity.set_projection(&projection(), after(2));
        let line = |activity: &Activity, step: u32| {
            let rest = format!("(step {step}, 2 tool calls, 120 tokens, 9 s; ^C parks)");
            let line = activity.line(after(9));
            line.strip_suffix(&rest).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        assert_eq!(line(&activity, 3), "Running, 7 s ");
        activity.observe(Progress::ModelRequested(Stage::Plan), after(3));
        assert_eq!(line(&activity, 4), "Waiting for the model, 6 s ");
        activity.observe(Progress::ModelAnswering(999), after(4));
        assert_eq!(line(&activity, 4), "The model answers: 999 bytes, 6 s ");
        activity.observe(Progress::ModelAnswering(12_345), after(4));
        assert_eq!(line(&activity, 4), "The model answers: 12.3 kB, 6 s ");
        activity.observe(Progress::ModelRequested(Stage::Finalization), after(5));
        assert_eq!(line(&activity, 3), "Waiting for the model (finalization gate), 4 s ");
        let mut first = projection();
        first.usage.llm_calls.plan = 0;
        activity.set_projection(&first, after(5));
        assert_eq!(line(&activity, 1), "Waiting for the model (finalization gate), 4 s ");
        first.phase = Phase::AwaitingReply;
        activity.set_projection(&first, after(5));
        assert_eq!(line(&activity, 1), "AwaitingReply, 4 s ");
    }

    #[test]
    fn calls_in_progress_are_shown_with_the_progress_that_their_server_reports() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        activity.set_projection(&projection(), now);
        let description = |activity: &Activity| activity.line(now).split(" (").next().unwrap().to_owned();
        let reported = |progress, message: Option<&str>| {
            let message = message.map(str::to_owned);
            Progress::ToolProgressed(ToolProgress { progress, total: Some(10.0), message, level: None })
        };
        activity.observe(reported(Some(1.0), None), now);
        assert_eq!(description(&activity), "Running, 0 s");
        activity.observe(Progress::ToolCalled("pack".into()), now);
        activity.observe(reported(Some(2.5), Some("picking")), now);
        assert_eq!(description(&activity), "pack: 2.5 of 10, picking, 0 s");
        activity.observe(Progress::ToolCalled("ship".into()), now);
        activity.observe(Progress::ToolEnded("pack".into()), now);
        assert_eq!(description(&activity), "ship, 0 s");
        activity.observe(reported(None, Some("loading")), now);
        assert_eq!(description(&activity), "ship: loading, 0 s");
        activity.observe(Progress::ToolEnded("ship".into()), now);
        assert_eq!(description(&activity), "Running, 0 s");
    }

    #[test]
    fn a_wait_is_shown_until_the_next_request() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        activity.set_waiting(Some(&ExternalWait::McpUnavailable { message: "refused".into() }));
        assert_eq!(activity.line(now), "Waiting for the MCP server (0 s; ^C parks): refused");
        activity.set_projection(&projection(), now);
        activity.set_waiting(Some(&ExternalWait::ModelUnavailable { message: "busy".into() }));
        let line = activity.line(now);
        assert!(line.starts_with("Waiting for the model, 0 s") && line.ends_with(": busy"), "{line}");
        activity.observe(Progress::ModelRequested(Stage::Plan), now);
        assert!(activity.line(now).starts_with("Waiting for the model, 0 s"));
        activity.set_waiting(Some(&ExternalWait::SecretMissing {
            name: "llm".into(),
            key: "token".into(),
            until: None,
        }));
        activity.set_waiting(None);
        assert!(activity.line(now).starts_with("Waiting for the model, 0 s"));
    }
}
