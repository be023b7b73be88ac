//! The tokens, requests and time that a conversation has spent (`docs/explanation/engine.md`, section 5).

use crate::event::Answer;
use bloomery_crds::v1alpha1::{LlmCalls, Stage};

/// The estimated bytes of a token, for text that the provider has not counted yet.
const BYTES_PER_TOKEN: u64 = 4;

/// The tokens, requests and time that a conversation has spent, and the tokens that it has reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    requests: LlmCalls,
    /// The answers of the model in the main loop.
    answers: u32,
    /// The input tokens that providers counted.
    input: u64,
    /// The part of `input` that providers read from their cache.
    cached: u64,
    /// The output tokens that providers counted.
    output: u64,
    /// The reserve of the open request. It counts as spent until the answer arrives.
    reserved: u64,
    /// The reserves of requests whose answers are lost or have no token count.
    forfeited: u64,
    /// The size of the next prompt of the main loop, in bytes.
    prompt_bytes: u64,
    /// The tokens of the latest prompt of the main loop, as the provider counted them; 0 if there is no count for the prompt.
    prompt_tokens: u64,
    worked_ms: u64,
}

impl Budget {
    /// Adds time that the worker has spent on the conversation.
    pub(crate) fn add_work(&mut self, elapsed_ms: u64) {
        self.worked_ms = self.worked_ms.saturating_add(elapsed_ms);
    }

    /// Adds text to the prompt of the main loop.
    pub(crate) fn add_to_prompt(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.saturating_add(bytes as u64);
    }

    /// Removes text from the prompt of the main loop.
    pub(crate) fn remove_from_prompt(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.saturating_sub(bytes as u64);
        // The provider counted the longer prompt.
        self.prompt_tokens = 0;
    }

    /// Counts a request and reserves its tokens. An earlier request without an answer is lost.
    pub(crate) fn open_request(&mut self, reserve: u64, stage: Stage) {
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

    /// Replaces the reserve of the open request by the tokens that the provider counted. Without a count, the reserve stays
    /// spent.
    pub(crate) fn settle_request(&mut self, answer: &Answer, stage: Stage) {
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
            _ => self.forfeited = self.forfeited.saturating_add(reserved),
        }
    }

    /// Frees the reserve of a request that the provider did not serve: it spent nothing.
    pub(crate) fn release_request(&mut self) {
        self.reserved = 0;
    }

    /// Counts the reserve of a request whose answer is lost as spent: the provider may have served it.
    pub(crate) fn abandon_request(&mut self) {
        self.forfeited = self.forfeited.saturating_add(std::mem::take(&mut self.reserved));
    }

    /// Returns the tokens to reserve for the next request of the main loop: the estimated input and the largest output.
    pub fn reserve(&self, max_output: u64) -> u64 {
        Self::reserve_for(self.prompt_bytes, max_output)
    }

    /// Returns the tokens to reserve for a request with `bytes` bytes of text: the estimated input and the largest output.
    pub fn reserve_for(bytes: u64, max_output: u64) -> u64 {
        (bytes / BYTES_PER_TOKEN).saturating_add(max_output)
    }

    /// Returns the tokens of the next prompt of the main loop: the larger of the provider's latest count and an estimate.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.max(self.prompt_bytes / BYTES_PER_TOKEN)
    }

    /// Tokens spent, and tokens reserved by the open request.
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

    /// Tokens sent, as the provider counted them. A request without a count adds its reserve.
    pub fn input_tokens(&self) -> u64 {
        self.input.saturating_add(self.forfeited)
    }

    /// Tokens sent that the provider had cached.
    pub fn cached_tokens(&self) -> u64 {
        self.cached
    }

    /// Tokens received, as the provider counted them.
    pub fn output_tokens(&self) -> u64 {
        self.output
    }

    /// Milliseconds of work, over all epochs.
    pub fn worked_ms(&self) -> u64 {
        self.worked_ms
    }
}
