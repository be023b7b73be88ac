//! Sums of what conversations have consumed.

use super::super::skill::Stage;
use super::status::{LlmCalls, ModelUsage, Tokens, TokensByStage, Usage};
use strum::IntoEnumIterator;

impl Usage {
    /// Returns the number of tokens. The sum does not overflow, whatever numbers a model reports.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds the usage of another conversation, except its working time.
    pub fn add(&mut self, other: &Self) {
        let Self {
            llm_calls,
            input_tokens,
            cached_input_tokens,
            output_tokens,
            by_model,
            tool_calls,
            seconds: _,
            children,
        } = other;
        self.llm_calls.add(llm_calls);
        self.input_tokens = self.input_tokens.saturating_add(*input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(*cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(*output_tokens);
        self.tool_calls = self.tool_calls.saturating_add(*tool_calls);
        for model in by_model {
            self.add_model(model);
        }
        if let Some(children) = children {
            self.children = Some(self.children.unwrap_or_default().plus(children));
        }
    }

    /// Adds the usage of a Model. That of Models beyond the maximum is one item with an empty name.
    fn add_model(&mut self, other: &ModelUsage) {
        if let Some(known) = self.by_model.iter_mut().find(|usage| usage.model == other.model) {
            known.add(other);
            return;
        }
        if other.model.is_empty() || self.by_model.len() + 1 < Self::MAX_MODELS {
            self.by_model.push(other.clone());
        } else {
            self.add_model(&ModelUsage { model: String::new(), ..other.clone() });
        }
    }
}

impl ModelUsage {
    /// Returns the tokens of all stages.
    pub fn tokens(&self) -> Tokens {
        Tokens { input: self.input_tokens, cached_input: self.cached_input_tokens, output: self.output_tokens }
    }

    /// Adds an ended call in a stage, with its tokens.
    pub fn add_call(&mut self, stage: Stage, tokens: Tokens) {
        let calls = self.llm_calls.in_stage_mut(stage);
        *calls = calls.saturating_add(1);
        self.add_tokens(tokens);
        self.tokens_by_stage.add_in_stage(stage, tokens);
    }

    fn add(&mut self, other: &Self) {
        self.llm_calls.add(&other.llm_calls);
        self.add_tokens(other.tokens());
        self.tokens_by_stage.add(&other.tokens_by_stage);
    }

    fn add_tokens(&mut self, tokens: Tokens) {
        let Tokens { input, cached_input, output } = self.tokens().plus(tokens);
        (self.input_tokens, self.cached_input_tokens, self.output_tokens) = (input, cached_input, output);
    }
}

impl TokensByStage {
    fn add(&mut self, other: &Self) {
        for stage in Stage::iter() {
            self.add_in_stage(stage, other.in_stage(stage));
        }
    }

    /// Adds tokens to those of a stage. A stage without tokens stays absent.
    fn add_in_stage(&mut self, stage: Stage, tokens: Tokens) {
        if tokens != Tokens::default() {
            let sum = self.in_stage_mut(stage);
            *sum = sum.plus(tokens);
        }
    }
}

impl Tokens {
    /// Returns these tokens without a part of them.
    #[must_use]
    pub fn less(self, Self { input, cached_input, output }: Self) -> Self {
        Self {
            input: self.input.saturating_sub(input),
            cached_input: self.cached_input.saturating_sub(cached_input),
            output: self.output.saturating_sub(output),
        }
    }

    /// Returns the sum of both.
    fn plus(self, Self { input, cached_input, output }: Self) -> Self {
        Self {
            input: self.input.saturating_add(input),
            cached_input: self.cached_input.saturating_add(cached_input),
            output: self.output.saturating_add(output),
        }
    }
}

impl LlmCalls {
    fn add(&mut self, other: &Self) {
        for stage in Stage::iter() {
            let calls = self.in_stage_mut(stage);
            *calls = calls.saturating_add(other.in_stage(stage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::ChildrenUsage;

    fn usage(model: &str, tokens: u64) -> Usage {
        let llm_calls = LlmCalls { plan: 2, ..LlmCalls::default() };
        let mut of_model = ModelUsage { model: model.to_owned(), ..ModelUsage::default() };
        of_model.add_call(Stage::Plan, Tokens { input: tokens, ..Tokens::default() });
        of_model.add_call(Stage::Plan, Tokens::default());
        Usage {
            llm_calls,
            input_tokens: tokens,
            by_model: vec![of_model],
            tool_calls: 1,
            seconds: 7,
            children: Some(ChildrenUsage { steps: 3, ..ChildrenUsage::default() }),
            ..Usage::default()
        }
    }

    #[test]
    fn usages_are_added_by_model() {
        let mut sum = Usage::default();
        for (model, tokens) in [("large", 10), ("small", 1), ("large", 5), ("large", u64::MAX)] {
            sum.add(&usage(model, tokens));
        }
        assert_eq!((sum.llm_calls.plan, sum.tool_calls, sum.seconds, sum.tokens()), (8, 4, 0, u64::MAX));
        assert_eq!(sum.children.map(|children| children.steps), Some(12));
        let large = &sum.by_model[0].tokens_by_stage;
        assert_eq!((large.in_stage(Stage::Plan).input, large.in_stage(Stage::Polish).input), (u64::MAX, 0));
        let models: Vec<_> = sum.by_model.iter().map(|usage| (usage.model.as_str(), usage.llm_calls.plan)).collect();
        assert_eq!(models, [("large", 6), ("small", 2)]);
    }

    #[test]
    fn models_beyond_the_maximum_are_added_together() {
        let mut sum = Usage::default();
        for nth in 0..12 {
            sum.add(&usage(&format!("m-{nth}"), 10));
        }
        assert_eq!(sum.by_model.len(), Usage::MAX_MODELS);
        assert_eq!(sum.by_model.last().map(|usage| (usage.model.as_str(), usage.input_tokens)), Some(("", 50)));
    }
}
