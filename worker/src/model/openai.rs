//! OpenAI chat completions, as any compatible server speaks them.

pub(super) mod answer;
pub(super) mod request;
pub(super) mod stream;
