//! The protocol of OpenAI chat completions, as compatible servers speak it.

pub(crate) mod answer;
pub(crate) mod request;
pub(crate) mod stream;
