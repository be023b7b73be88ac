//! What a conversation has spent (`engine.md`, section 5).

use crate::event::Answer;

/// Bytes of text that make a token, roughly: an estimate for what is not counted yet.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens set aside for an answer.
const MAX_OUTPUT: u64 = 4096;

/// Spent and reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    requests: u32,
    answers: u32,
    input: u64,
    output: u64,
    /// Of a request that is not answered yet; it counts as spent until it is, and for good if it never is.
    reserved: u64,
    forfeited: u64,
    prompt_bytes: u64,
    worked_ms: u64,
}

impl Budget {
    pub(super) fn work(&mut self, elapsed_ms: u64) {
        self.worked_ms = self.worked_ms.saturating_add(elapsed_ms);
    }

    pub(super) fn read(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.saturating_add(bytes as u64);
    }

    pub(super) fn requested(&mut self, reserve: u64) {
        self.abandon_request();
        self.requests += 1;
        self.reserved = reserve;
    }

    pub(super) fn answered(&mut self, answer: &Answer) {
        self.answers += 1;
        let reserved = std::mem::take(&mut self.reserved);
        match (answer.input_tokens, answer.output_tokens) {
            (Some(input), Some(output)) => {
                self.input = self.input.saturating_add(input);
                self.output = self.output.saturating_add(output);
            }
            // A provider that does not count cannot be trusted to be cheap.
            _ => self.forfeited = self.forfeited.saturating_add(reserved),
        }
    }

    pub(super) fn abandon_request(&mut self) {
        self.forfeited = self.forfeited.saturating_add(std::mem::take(&mut self.reserved));
    }

    /// Tokens to set aside for the next request: the estimated input and the largest output.
    pub fn reserve(&self) -> u64 {
        (self.prompt_bytes / BYTES_PER_TOKEN).saturating_add(MAX_OUTPUT)
    }

    /// Tokens spent, those set aside included.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.forfeited).saturating_add(self.reserved)
    }

    /// Requests to the model.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Answers of the model.
    pub fn answers(&self) -> u32 {
        self.answers
    }

    /// Tokens sent, as the provider counted them; requests without a count are in here with their reserve.
    pub fn input_tokens(&self) -> u64 {
        self.input.saturating_add(self.forfeited)
    }

    /// Tokens answered, as the provider counted them.
    pub fn output_tokens(&self) -> u64 {
        self.output
    }

    /// Milliseconds of work, over all epochs.
    pub fn worked_ms(&self) -> u64 {
        self.worked_ms
    }
}
