//! The lines for people about the steps of a Job: one for each answer of the model in the main loop, with its calls and their
//! outcomes. The trace in the memory has a line for each event.

use bloomery_worker::printer::event_of_line;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::mem;

/// Converts the lines of events to lines of steps.
#[derive(Debug)]
pub struct StepLines<W> {
    out: W,
    /// The beginning of a line whose end was not written yet.
    unfinished: Vec<u8>,
    step: Step,
}

/// The events since the last request to the model in the main loop.
#[derive(Debug, Default)]
struct Step {
    has_answer: bool,
    /// True after a request in the main loop, until a request of another stage.
    is_in_main_loop: bool,
    /// The calls of the answer: each with its id and its tool.
    calls: Vec<Call>,
    /// Why the gate rejects the answer.
    rejection: Option<String>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    /// The outcome of a call that was not completed.
    fate: Option<&'static str>,
}

impl<W> StepLines<W> {
    /// Creates a converter that writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, unfinished: Vec::new(), step: Step::default() }
    }
}

impl<W: Write> Write for StepLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unfinished.extend_from_slice(bytes);
        let complete = self.unfinished.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.unfinished.drain(..complete).collect();
        let mut steps = String::new();
        for line in String::from_utf8_lossy(&lines).lines() {
            if let Some((name, gist)) = event_of_line(line) {
                steps.extend(self.step.add(name, gist));
            }
        }
        self.out.write_all(steps.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Step {
    /// Adds an event. Returns the line of the step if the event ends it.
    fn add(&mut self, event: &str, gist: &str) -> Option<String> {
        let (id, rest) = gist.split_once([' ', ':']).unwrap_or((gist, ""));
        match event {
            // A request of another stage names its purpose.
            "model.requested" if gist.starts_with("for ") => self.is_in_main_loop = false,
            "model.requested" | "finished" | "parked" => {
                let next = Self { is_in_main_loop: event == "model.requested", ..Self::default() };
                return mem::replace(self, next).line();
            }
            "model.answered" => self.has_answer |= self.is_in_main_loop,
            "tool.requested" => {
                let tool = rest.split([' ', ':']).next().unwrap_or_default().to_owned();
                self.calls.push(Call { id: id.to_owned(), tool, fate: None });
            }
            "tool.ruled" if rest.contains(": Deny ") => self.end_call(id, "denied"),
            "tool.denied" => self.end_call(id, "denied"),
            "tool.failed" => self.end_call(id, "failed"),
            "tool.skipped" => self.end_call(id, "skipped"),
            "tool.indeterminate" => self.end_call(id, "no answer"),
            "gate.ruled" if gist.starts_with("failed: ") || gist.starts_with("form error: ") => {
                self.rejection = Some(gist.strip_prefix("failed: ").unwrap_or(gist).to_owned());
            }
            _ => {}
        }
        None
    }

    fn end_call(&mut self, id: &str, fate: &'static str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.fate = Some(fate);
        }
    }

    /// Returns the line, if the step has an answer.
    fn line(self) -> Option<String> {
        if !self.has_answer {
            return None;
        }
        let mut line = match self.rejection {
            Some(rejection) => format!("- an answer that the gate rejects: {rejection}"),
            None if self.calls.is_empty() => "- an answer".to_owned(),
            None => "- ".to_owned(),
        };
        for (nth, Call { tool, fate, .. }) in self.calls.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            let fate = fate.map(|fate| format!(" ({fate})")).unwrap_or_default();
            let _ = write!(line, "{comma}{tool}{fate}");
        }
        Some(line + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_one_line() {
        let events = [
            "epoch.started       epoch 1, attempt 1",
            "model.requested     for the intent, 100 tokens reserved",
            "model.answered      {\"intent\": \"refund\"}",
            "model.requested     4190 tokens reserved",
            "model.answered      calls track, refund, pay I look at the order",
            "tool.requested      6-0 track {\"order\":\"A-17\"}",
            "tool.requested      6-1 refund {\"amount\":900}",
            "tool.requested      6-2 pay: no object",
            "tool.ruled          6-0 track: Allow ",
            "tool.started        6-0 track",
            "tool.completed      6-0 track: 6-1 refund: Deny",
            "tool.ruled          6-1 refund: Deny Guardrail: amount > 500",
            "tool.skipped        6-2 pay because of 6-1 refund",
            "model.requested     4190 tokens reserved",
            "model.answered      Refunded.",
            "model.requested     for a ruling on the answer, 100 tokens reserved",
            "model.answered      {\"passed\": false}",
            "gate.ruled          failed: GOAL_NOT_MET: nothing was refunded",
            "model.requested     4190 tokens reserved",
            "model.answered      It cannot be refunded.",
            "gate.ruled          passed, score 1",
            "finished            Succeeded: The answer passed every gate.",
        ];
        let lines: String = (1..)
            .zip(events)
            .map(|(seq, event)| format!("2026-01-02T03:04:05.678Z {seq:>4} {event}\n"))
            .collect::<Vec<_>>()
            .concat();
        let mut steps = StepLines::new(Vec::new());
        for part in lines.as_bytes().chunks(7) {
            steps.write_all(part).unwrap();
        }
        let expected = "- track, refund (denied), pay (skipped)\n\
                        - an answer that the gate rejects: GOAL_NOT_MET: nothing was refunded\n\
                        - an answer\n";
        assert_eq!(String::from_utf8(steps.out).unwrap(), expected);
    }
}
