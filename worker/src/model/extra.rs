//! Parts of a request that are worth having and can be done without. Servers differ in which of them they know, and
//! some refuse what they do not know: such a part is left out from then on.

use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::step::ModelRequest;
use std::collections::BTreeSet;

/// One such part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extra {
    /// A streamed answer is to end with what it took in tokens.
    StreamUsage,
    /// The answer comes as it is made, so that a long one is told from none.
    Stream,
    /// The answer is held to a JSON Schema.
    AnswerSchema,
    /// The sampling temperature: models that reason have none.
    Temperature,
    /// The prompt is kept for the next request up to its latest turn.
    Cache,
    /// The same for the prompt of the system, and the tools before it.
    SystemCache,
    /// For whom it is asked: the Job.
    User,
    /// The limit of an answer is called `max_completion_tokens`, and `max_tokens` without this.
    CompletionTokens,
}

impl Extra {
    /// Those that a request has a use for.
    fn of(provider: ModelProvider, request: &ModelRequest<'_>) -> Vec<Self> {
        let ours = match provider {
            ModelProvider::Openai => vec![Self::StreamUsage, Self::Stream, Self::CompletionTokens],
            ModelProvider::Anthropic => vec![Self::Stream, Self::Cache, Self::SystemCache],
        };
        let form = request.answer_schema.as_ref().map(|_| Self::AnswerSchema);
        let temperature = request.temperature.map(|_| Self::Temperature);
        // Many refusals speak of the user, and mean something else.
        ours.into_iter().chain(form).chain(temperature).chain([Self::User]).collect()
    }

    /// The words by which a refusal names it.
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

/// What one server has refused so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refused(BTreeSet<Extra>);

impl Refused {
    /// Whether a request may carry this.
    pub(super) fn allows(&self, extra: Extra) -> bool {
        !self.0.contains(&extra)
    }

    /// Remembers a refusal.
    pub(super) fn add(&mut self, extra: Extra) {
        self.0.insert(extra);
    }

    /// What of a request the server most likely means, where it refuses it with these words: what it names. A form is
    /// refused in many words, so it is meant where nothing is named.
    pub(super) fn meant(&self, provider: ModelProvider, request: &ModelRequest<'_>, says: &str) -> Option<Extra> {
        let carried: Vec<Extra> =
            Extra::of(provider, request).into_iter().filter(|extra| self.allows(*extra)).collect();
        let words: BTreeSet<&str> = says.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let named = carried.iter().find(|extra| extra.words().iter().any(|word| words.contains(word)));
        named.or_else(|| carried.iter().find(|extra| **extra == Extra::AnswerSchema)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fixture::{form, request};
    use rstest::rstest;

    #[rstest]
    #[case::usage("Extra inputs are not permitted: body.stream_options.include_usage", Extra::StreamUsage)]
    #[case::stream("`stream` is not supported by this server", Extra::Stream)]
    #[case::temperature("Unsupported value: 'temperature' does not support 0.1 with this model.", Extra::Temperature)]
    #[case::form("Invalid parameter: 'response_format' of type 'json_schema' is not supported", Extra::AnswerSchema)]
    #[case::a_form_that_is_too_much("Schema is too complex for compilation.", Extra::AnswerSchema)]
    #[case::nothing_named("Bad request", Extra::AnswerSchema)]
    #[case::user("property 'user' is unsupported", Extra::User)]
    #[case::limit("Unrecognized request argument supplied: max_completion_tokens", Extra::CompletionTokens)]
    fn what_a_refusal_names_is_meant(#[case] says: &str, #[case] extra: Extra) {
        let request = ModelRequest { temperature: Some(0.1), answer_schema: Some(form()), ..request(&[]) };
        let mut refused = Refused::default();
        assert_eq!(refused.meant(ModelProvider::Openai, &request, says), Some(extra));
        refused.add(extra);
        assert_ne!(refused.meant(ModelProvider::Openai, &request, says), Some(extra), "it is left out already");
    }

    /// One that knows no mark of the whole request may know that of the system prompt.
    #[test]
    fn the_marks_of_the_cache_are_left_out_one_after_the_other() {
        let mut refused = Refused::default();
        let says = "system.0.cache_control: Extra inputs are not permitted";
        for mark in [Extra::Cache, Extra::SystemCache] {
            assert_eq!(refused.meant(ModelProvider::Anthropic, &request(&[]), says), Some(mark));
            refused.add(mark);
        }
        assert_eq!(refused.meant(ModelProvider::Anthropic, &request(&[]), says), None);
    }

    #[rstest]
    #[case::of_another_word("The upstream is gone.")]
    #[case::of_what_is_not_carried("temperature")]
    fn nothing_else_is(#[case] says: &str) {
        assert_eq!(Refused::default().meant(ModelProvider::Openai, &request(&[]), says), None);
    }
}
