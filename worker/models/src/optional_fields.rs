//! The optional fields of a request. If a server rejects a field, later requests omit it.

use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::step::ModelRequest;
use std::collections::BTreeSet;

/// A field of a request that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OptionalField {
    /// Requests the token usage at the end of a streamed answer.
    StreamUsage,
    /// Requests a streamed answer. A stream shows that a slow model is still answering.
    Stream,
    /// Requires an answer that conforms to a JSON Schema.
    AnswerSchema,
    /// The sampling temperature. Reasoning models reject it.
    Temperature,
    /// Allows the provider to cache the prompt up to its latest turn.
    Cache,
    /// Allows the provider to cache the tools and the system prompt.
    SystemCache,
    /// The user, which is the UID of the Job.
    User,
    /// The limit of an answer as `max_completion_tokens`. Without this field, the limit is sent as `max_tokens`.
    CompletionTokens,
}

impl OptionalField {
    /// Returns the optional fields that a request may carry, in the order in which [`UnsupportedFields::rejected_field`] tries them.
    fn in_request(provider: ModelProvider, request: &ModelRequest<'_>) -> Vec<Self> {
        let always = match provider {
            ModelProvider::Openai => vec![Self::StreamUsage, Self::Stream, Self::CompletionTokens],
            ModelProvider::Anthropic => vec![Self::Stream, Self::Cache, Self::SystemCache],
        };
        let schema = request.answer_schema.as_ref().map(|_| Self::AnswerSchema);
        let temperature = request.temperature.map(|_| Self::Temperature);
        // The user is last, because many objections contain the word "user" and concern another field.
        always.into_iter().chain(schema).chain(temperature).chain([Self::User]).collect()
    }

    /// Returns the words by which servers refer to the field in an objection.
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

    /// Returns the field that a server most likely rejects with the text `objection`: the first field of the request that the text
    /// mentions. If the text mentions none, it is the answer's schema, because servers reject schemas with many different texts.
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
    use crate::fixture::{answer_schema, request};
    use rstest::rstest;

    #[rstest]
    #[case::usage("Extra inputs are not permitted: body.stream_options.include_usage", OptionalField::StreamUsage)]
    #[case::stream("`stream` is not supported by this server", OptionalField::Stream)]
    #[case::temperature(
        "Unsupported value: 'temperature' does not support 0.1 with this model.",
        OptionalField::Temperature
    )]
    #[case::schema(
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        OptionalField::AnswerSchema
    )]
    #[case::a_schema_that_is_too_complex("Schema is too complex for compilation.", OptionalField::AnswerSchema)]
    #[case::no_field_mentioned("Bad request", OptionalField::AnswerSchema)]
    #[case::user("property 'user' is unsupported", OptionalField::User)]
    #[case::limit("Unrecognized request argument supplied: max_completion_tokens", OptionalField::CompletionTokens)]
    fn the_field_that_an_objection_mentions_is_rejected(#[case] objection: &str, #[case] field: OptionalField) {
        let request = ModelRequest { temperature: Some(0.1), answer_schema: Some(answer_schema()), ..request(&[]) };
        let mut unsupported = UnsupportedFields::default();
        assert_eq!(unsupported.rejected_field(ModelProvider::Openai, &request, objection), Some(field));
        unsupported.add(field);
        assert_ne!(
            unsupported.rejected_field(ModelProvider::Openai, &request, objection),
            Some(field),
            "the request omits the field already"
        );
    }

    /// A server that rejects the cache field of the whole request may support the one of the system prompt.
    #[test]
    fn the_two_cache_fields_are_left_out_one_after_the_other() {
        let mut unsupported = UnsupportedFields::default();
        let objection = "system.0.cache_control: Extra inputs are not permitted";
        for field in [OptionalField::Cache, OptionalField::SystemCache] {
            assert_eq!(unsupported.rejected_field(ModelProvider::Anthropic, &request(&[]), objection), Some(field));
            unsupported.add(field);
        }
        assert_eq!(unsupported.rejected_field(ModelProvider::Anthropic, &request(&[]), objection), None);
    }

    #[rstest]
    #[case::a_word_that_contains_a_field_name("The upstream is gone.")]
    #[case::a_field_that_is_not_in_the_request("temperature")]
    fn no_field_is_rejected_without_a_mention(#[case] objection: &str) {
        assert_eq!(UnsupportedFields::default().rejected_field(ModelProvider::Openai, &request(&[]), objection), None);
    }
}
