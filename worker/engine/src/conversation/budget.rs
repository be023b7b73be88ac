//! What a conversation has spent (`engine.md`, section 5).

use crate::event::Answer;
use bloomery_crds::v1alpha1::{LlmCalls, Stage};

/// Bytes of text that make a token, roughly: an estimate for what is not counted yet.
const BYTES_PER_TOKEN: u64 = 4;

/// Spent and reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    requests: LlmCalls,
    answers: u32,
    input: u64,
    cached: u64,
    output: u64,
    /// Of a request that is not answered yet; it counts as spent until it is, and for good if it never is.
    reserved: u64,
    forfeited: u64,
    prompt_bytes: u64,
    prompt_tokens: u64,
    worked_ms: u64,
}

impl Budget {
    pub(super) fn work(&mut self, elapsed_ms: u64) {
        self.worked_ms = self.worked_ms.saturating_add(elapsed_ms);
    }

    pub(super) fn read(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.saturating_add(bytes as u64);
    }

    /// Text that the prompts hold no longer.
    pub(super) fn put_aside(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.saturating_sub(bytes as u64);
        self.prompt_tokens = 0;
    }

    pub(super) fn requested(&mut self, reserve: u64, stage: Stage) {
        self.abandon_request();
        match stage {
            Stage::Intent => self.requests.intent += 1,
            Stage::Selection => self.requests.selection += 1,
            Stage::Plan => self.requests.plan += 1,
            Stage::Finalization => self.requests.finalization += 1,
            Stage::Polish => self.requests.polish += 1,
        }
        self.reserved = reserve;
    }

    pub(super) fn answered(&mut self, answer: &Answer, stage: Stage) {
        if stage == Stage::Plan {
            self.answers += 1;
            self.prompt_tokens = answer.input_tokens.unwrap_or_default();
        }
        let reserved = std::mem::take(&mut self.reserved);
        match (answer.input_tokens, answer.output_tokens) {
            (Some(input), Some(output)) => {
                self.input = self.input.saturating_add(input);
                self.cached = self.cached.saturating_add(answer.cached_tokens.unwrap_or_default().min(input));
                self.output = self.output.saturating_add(output);
            }
            // A provider that does not count cannot be trusted to be cheap.
            _ => self.forfeited = self.forfeited.saturating_add(reserved),
        }
    }

    pub(super) fn abandon_request(&mut self) {
        self.forfeited = self.forfeited.saturating_add(std::mem::take(&mut self.reserved));
    }

    /// Tokens to set aside for the next request of the main loop: the estimated input and the largest output.
    pub fn reserve(&self, max_output: u64) -> u64 {
        Self::reserve_for(self.prompt_bytes, max_output)
    }

    /// Tokens to set aside for a request of `bytes` bytes of text.
    pub fn reserve_for(bytes: u64, max_output: u64) -> u64 {
        (bytes / BYTES_PER_TOKEN).saturating_add(max_output)
    }

    /// Tokens that the next prompt of the main loop takes, by what the provider counted last or by estimate.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.max(self.prompt_bytes / BYTES_PER_TOKEN)
    }

    /// Tokens spent, those set aside included.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.forfeited).saturating_add(self.reserved)
    }

    /// Requests to the model, by stage.
    pub fn requests(&self) -> &LlmCalls {
        &self.requests
    }

    /// Answers of the model in the main loop.
    pub fn answers(&self) -> u32 {
        self.answers
    }

    /// Tokens sent, as the provider counted them; requests without a count are in here with their reserve.
    pub fn input_tokens(&self) -> u64 {
        self.input.saturating_add(self.forfeited)
    }

    /// Tokens sent that the provider had in its cache.
    pub fn cached_tokens(&self) -> u64 {
        self.cached
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
