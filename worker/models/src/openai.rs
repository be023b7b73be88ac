//! The protocol of OpenAI chat completions, including deviations of compatible servers.

pub(crate) mod answer;
pub(crate) mod request;
pub(crate) mod stream;
