//! The tokens, requests and time that a conversation has spent (`docs/explanation/engine.md`, section 5).

use crate::event::Answer;
use bloomery_crds::v1alpha1::{ChildrenUsage, LlmCalls, ModelUsage, Stage, Tokens, Usage};
use std::collections::BTreeMap;

/// The estimated bytes of a token, for text that the provider has not counted yet.
const BYTES_PER_TOKEN: u64 = 4;

/// The tokens, requests and time that a conversation has spent, and the tokens that it has reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    requests: LlmCalls,
    /// The requests that have ended, and their tokens, by the name of their Model. The name is empty for Models beyond the maximum.
    by_model: BTreeMap<String, ModelUsage>,
    /// The answers of the model in the main loop.
    answers: u32,
    /// The input tokens that providers counted.
    input: u64,
    /// The part of `input` that providers read from their cache.
    cached: u64,
    /// The output tokens that providers counted.
    output: u64,
    /// The request without an answer.
    open: OpenRequest,
    /// The reserves of requests whose answers are lost or have no token count.
    forfeited: u64,
    /// The size of the next prompt of the main loop, in bytes.
    prompt_bytes: u64,
    /// The tokens of the latest prompt of the main loop, as the provider counted them; 0 if there is no count for the prompt.
    prompt_tokens: u64,
    worked_ms: u64,
    /// The budgets that ended children consumed.
    children: ChildrenUsage,
    /// The limits of the open child, which count as spent until it has ended.
    child_reserve: Option<ChildrenUsage>,
}

/// A request without an answer; by default, none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OpenRequest {
    /// Its reserve, which counts as spent until the answer arrives.
    reserve: u64,
    stage: Stage,
    /// The Model of the stage; `None` if there is no open request.
    model: Option<String>,
}

impl Budget {
    /// Adds time that the worker has spent on the conversation.
    pub(crate) fn add_work(&mut self, elapsed_ms: u64) {
        self.worked_ms = self.worked_ms.saturating_add(elapsed_ms);
    }

    /// Reserves the limits of a child.
    pub(crate) fn reserve_child(&mut self, limits: ChildrenUsage) {
        self.forfeit_child();
        self.child_reserve = Some(limits);
    }

    /// Replaces the reserve of the open child with its usage.
    pub(crate) fn settle_child(&mut self, spent: &ChildrenUsage) {
        self.child_reserve = None;
        self.children = self.children.plus(spent);
    }

    /// Counts the reserve of the open child as spent, because its usage is not known.
    pub(crate) fn forfeit_child(&mut self) {
        let spent = self.child_reserve.take().unwrap_or_default();
        self.children = self.children.plus(&spent);
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

    /// Counts a request of a stage to its Model, and reserves its tokens. An earlier request without an answer is lost.
    pub(crate) fn open_request(&mut self, reserve: u64, stage: Stage, model: &str) {
        self.abandon_request();
        *self.requests.in_stage_mut(stage) += 1;
        self.usage_of(model);
        self.open = OpenRequest { reserve, stage, model: Some(model.to_owned()) };
    }

    /// Replaces the reserve of the open request by the tokens that the provider counted. Without a count, the reserve stays
    /// spent.
    pub(crate) fn settle_request(&mut self, answer: &Answer, stage: Stage) {
        if stage == Stage::Plan {
            self.answers += 1;
            self.prompt_tokens = answer.input_tokens.unwrap_or_default();
        }
        let open = std::mem::take(&mut self.open);
        let spent = if let (Some(input), Some(output)) = (answer.input_tokens, answer.output_tokens) {
            let cached_input = answer.cached_tokens.unwrap_or_default().min(input);
            self.input = self.input.saturating_add(input);
            self.cached = self.cached.saturating_add(cached_input);
            self.output = self.output.saturating_add(output);
            Tokens { input, cached_input, output }
        } else {
            self.forfeited = self.forfeited.saturating_add(open.reserve);
            Tokens { input: open.reserve, ..Tokens::default() }
        };
        self.add_to_model(answer.model.clone().or(open.model), stage, spent);
    }

    /// Frees the reserve of a request that the provider did not serve: it spent nothing.
    pub(crate) fn release_request(&mut self) {
        let OpenRequest { stage, model, .. } = std::mem::take(&mut self.open);
        self.add_to_model(model, stage, Tokens::default());
    }

    /// Counts the reserve of a request whose answer is lost as spent: the provider may have served it.
    pub(crate) fn abandon_request(&mut self) {
        let OpenRequest { reserve, stage, model } = std::mem::take(&mut self.open);
        self.forfeited = self.forfeited.saturating_add(reserve);
        self.add_to_model(model, stage, Tokens { input: reserve, ..Tokens::default() });
    }

    /// Adds an ended request and its tokens to its Model. Does nothing if there was no request.
    fn add_to_model(&mut self, model: Option<String>, stage: Stage, tokens: Tokens) {
        if let Some(model) = model {
            self.usage_of(&model).add_call(stage, tokens);
        }
    }

    /// Returns the usage of a Model.
    fn usage_of(&mut self, model: &str) -> &mut ModelUsage {
        let has_room = self.by_model.len() < Usage::MAX_MODELS - 1;
        let name = if has_room || self.by_model.contains_key(model) { model } else { "" };
        let usage = self.by_model.entry(name.to_owned()).or_default();
        name.clone_into(&mut usage.model);
        usage
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

    /// Tokens spent by the conversation and its children, and tokens reserved by the open request and the open child.
    pub fn tokens(&self) -> u64 {
        let own = self.input.saturating_add(self.output).saturating_add(self.forfeited);
        own.saturating_add(self.open.reserve).saturating_add(self.delegated().tokens)
    }

    /// The budgets that ended children consumed.
    pub fn children(&self) -> &ChildrenUsage {
        &self.children
    }

    /// The budgets that children consumed, and those that are reserved for the open child.
    pub fn delegated(&self) -> ChildrenUsage {
        self.children.plus(&self.child_reserve.unwrap_or_default())
    }

    /// Answers of the model in the main loop, and the steps of children.
    pub fn steps(&self) -> u32 {
        self.answers.saturating_add(self.delegated().steps)
    }

    /// Milliseconds of work, over all epochs, and the work of children.
    pub fn spent_ms(&self) -> u64 {
        self.worked_ms.saturating_add(self.delegated().seconds.saturating_mul(1000))
    }

    /// Requests to the model, by stage.
    pub fn requests(&self) -> &LlmCalls {
        &self.requests
    }

    /// Requests that have ended, and their tokens, by Model.
    pub fn by_model(&self) -> impl Iterator<Item = &ModelUsage> {
        self.by_model.values()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::says;

    fn answer(model: &str, tokens: u64) -> Answer {
        Answer { model: Some(model.into()), input_tokens: Some(tokens), output_tokens: Some(1), ..says("") }
    }

    #[test]
    fn each_request_counts_for_the_model_that_ended_it() {
        let mut budget = Budget::default();
        budget.open_request(500, Stage::Plan, "large");
        let counts = |budget: &Budget| {
            let count = |usage: &ModelUsage| {
                (
                    usage.model.clone(),
                    usage.llm_calls.plan,
                    usage.llm_calls.polish,
                    usage.input_tokens,
                    usage.output_tokens,
                )
            };
            budget.by_model().map(count).collect::<Vec<_>>()
        };
        assert_eq!(
            counts(&budget),
            [("large".into(), 0, 0, 0, 0)],
            "a report must show that this worker counts by Model"
        );
        budget.settle_request(&answer("large", 90), Stage::Plan);
        budget.open_request(500, Stage::Plan, "large");
        budget.settle_request(&answer("fallback", 70), Stage::Plan);
        budget.open_request(500, Stage::Polish, "kind");
        budget.release_request();
        budget.open_request(500, Stage::Plan, "large");
        budget.abandon_request();
        budget.abandon_request();
        let expected = [("fallback".into(), 1, 0, 70, 1), ("kind".into(), 0, 1, 0, 0), ("large".into(), 2, 0, 590, 1)];
        assert_eq!(counts(&budget), expected);
        assert_eq!(budget.input_tokens(), 70 + 590);
    }

    #[test]
    fn the_reserve_of_a_child_counts_until_it_is_replaced_by_what_the_child_consumed() {
        let limits = ChildrenUsage { steps: 10, tool_calls: 20, tokens: 5000, seconds: 60 };
        let spent = ChildrenUsage { steps: 2, tool_calls: 3, tokens: 700, seconds: 5 };
        let mut budget = Budget::default();
        let counts =
            |budget: &Budget| (budget.steps(), budget.delegated().tool_calls, budget.tokens(), budget.spent_ms());
        budget.reserve_child(limits);
        assert_eq!(counts(&budget), (10, 20, 5000, 60_000));
        budget.settle_child(&spent);
        assert_eq!((counts(&budget), *budget.children()), ((2, 3, 700, 5000), spent));
        budget.reserve_child(limits);
        budget.settle_child(&ChildrenUsage::default());
        assert_eq!(counts(&budget), (2, 3, 700, 5000), "a child that was not created has consumed nothing");
        budget.reserve_child(limits);
        budget.forfeit_child();
        budget.forfeit_child();
        assert_eq!(counts(&budget), (12, 23, 5700, 65_000));
    }

    #[test]
    fn models_beyond_the_maximum_are_counted_together() {
        let mut budget = Budget::default();
        for nth in 0..12 {
            budget.open_request(0, Stage::Plan, &format!("m-{nth}"));
            budget.settle_request(&answer(&format!("m-{nth}"), 10), Stage::Plan);
        }
        let models: Vec<_> = budget.by_model().map(|usage| (usage.model.as_str(), usage.input_tokens)).collect();
        assert_eq!(models.len(), Usage::MAX_MODELS);
        assert_eq!(models.first(), Some(&("", 50)));
    }
}
