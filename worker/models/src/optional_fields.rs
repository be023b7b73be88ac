//! Optional parts of a request. Some servers reject a field that they do not know; requests omit it from then on.

use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::step::ModelRequest;
use std::collections::BTreeSet;

/// A part of a request that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OptionalField {
    /// A streamed answer ends with its token usage.
    StreamUsage,
    /// The answer is streamed, so that a slow answer differs from none.
    Stream,
    /// The answer follows a JSON Schema.
    AnswerSchema,
    /// The sampling temperature. Reasoning models have none.
    Temperature,
    /// The provider caches the prompt up to its latest turn.
    Cache,
    /// The provider caches the tools and the system prompt.
    SystemCache,
    /// The user, which is the Job.
    User,
    /// The limit of an answer is called `max_completion_tokens`. If left out, it is called `max_tokens`.
    CompletionTokens,
}

impl OptionalField {
    /// Returns the optional fields that a request may carry.
    fn in_request(provider: ModelProvider, request: &ModelRequest<'_>) -> Vec<Self> {
        let always = match provider {
            ModelProvider::Openai => vec![Self::StreamUsage, Self::Stream, Self::CompletionTokens],
            ModelProvider::Anthropic => vec![Self::Stream, Self::Cache, Self::SystemCache],
        };
        let schema = request.answer_schema.as_ref().map(|_| Self::AnswerSchema);
        let temperature = request.temperature.map(|_| Self::Temperature);
        // The user is last: many objections mention a user and mean another field.
        always.into_iter().chain(schema).chain(temperature).chain([Self::User]).collect()
    }

    /// Returns the words that name the field in an objection.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::StreamUsage => &["stream_options", "include_usage"],
            Self::Stream => &["stream", "streaming"],
            Self::AnswerSchema => {
                &["response_format", "json_schema", "output_config", "output_format", "schema", "structured"]
            }
            Self::Temperature => &["temperature"],
            Self::Cache | Self::SystemCache => &["cache_control"],
            Self::User => &["user", "metadata", "user_id"],
            Self::CompletionTokens => &["max_completion_tokens"],
        }
    }
}

/// The fields that one server has rejected so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnsupportedFields(BTreeSet<OptionalField>);

impl UnsupportedFields {
    /// Returns whether a request may carry a field.
    pub(crate) fn allows(&self, field: OptionalField) -> bool {
        !self.0.contains(&field)
    }

    /// Adds a rejected field.
    pub(crate) fn add(&mut self, field: OptionalField) {
        self.0.insert(field);
    }

    /// Returns the field of a request that a server most likely rejects with `objection`: the first one that the text names. If it
    /// names none, that is the answer's schema, because servers reject schemas in many words.
    pub(crate) fn rejected_field(
        &self,
        provider: ModelProvider,
        request: &ModelRequest<'_>,
        objection: &str,
    ) -> Option<OptionalField> {
        let fields = OptionalField::in_request(provider, request).into_iter();
        let carried: Vec<OptionalField> = fields.filter(|field| self.allows(*field)).collect();
        let words: BTreeSet<&str> = objection.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let named = carried.iter().find(|field| field.words().iter().any(|word| words.contains(word)));
        named.or_else(|| carried.iter().find(|field| **field == OptionalField::AnswerSchema)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{form, request};
    use rstest::rstest;

    #[rstest]
    #[case::usage(
        "OptionalField inputs are not permitted: body.stream_options.include_usage",
        OptionalField::StreamUsage
    )]
    #[case::stream("`stream` is not supported by this server", OptionalField::Stream)]
    #[case::temperature(
        "Unsupported value: 'temperature' does not support 0.1 with this model.",
        OptionalField::Temperature
    )]
    #[case::form(
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        OptionalField::AnswerSchema
    )]
    #[case::a_form_that_is_too_much("Schema is too complex for compilation.", OptionalField::AnswerSchema)]
    #[case::nothing_named("Bad request", OptionalField::AnswerSchema)]
    #[case::user("property 'user' is unsupported", OptionalField::User)]
    #[case::limit("Unrecognized request argument supplied: max_completion_tokens", OptionalField::CompletionTokens)]
    fn what_a_refusal_names_is_meant(#[case] says: &str, #[case] extra: OptionalField) {
        let request = ModelRequest { temperature: Some(0.1), answer_schema: Some(form()), ..request(&[]) };
        let mut unsupported = UnsupportedFields::default();
        assert_eq!(unsupported.rejected_field(ModelProvider::Openai, &request, says), Some(extra));
        unsupported.add(extra);
        assert_ne!(
            unsupported.rejected_field(ModelProvider::Openai, &request, says),
            Some(extra),
            "it is left out already"
        );
    }

    /// One that knows no mark of the whole request may know that of the system prompt.
    #[test]
    fn the_marks_of_the_cache_are_left_out_one_after_the_other() {
        let mut unsupported = UnsupportedFields::default();
        let says = "system.0.cache_control: OptionalField inputs are not permitted";
        for mark in [OptionalField::Cache, OptionalField::SystemCache] {
            assert_eq!(unsupported.rejected_field(ModelProvider::Anthropic, &request(&[]), says), Some(mark));
            unsupported.add(mark);
        }
        assert_eq!(unsupported.rejected_field(ModelProvider::Anthropic, &request(&[]), says), None);
    }

    #[rstest]
    #[case::of_another_word("The upstream is gone.")]
    #[case::of_what_is_not_carried("temperature")]
    fn nothing_else_is(#[case] says: &str) {
        assert_eq!(UnsupportedFields::default().rejected_field(ModelProvider::Openai, &request(&[]), says), None);
    }
}
