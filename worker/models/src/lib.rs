//! Clients of language models. They support OpenAI chat completions, Anthropic Messages, and servers that are compatible with either.
//!
//! [`Clients`] asks the Models of a Job. A request to a model has no side effect, so it is retried as long as a retry can help.
//! [`RetryPolicy`] limits the time and sets the delays. Each wait is reported. A Model may have fallbacks, which are asked in turn.
//!
//! An answer that cannot be read is returned as an [`Error`] without a retry, because the engine counts such answers.

mod anthropic;
mod client;
mod clients;
mod error;
mod error_response;
#[cfg(test)]
mod fixture;
mod lenient;
mod limits;
mod openai;
mod optional_fields;
mod protocol;
mod provider;
mod request_error;
mod request_writer;
mod retry_after;
mod retry_policy;
mod sse;
mod stream;
mod transports;

#[cfg(fuzzing)]
pub use client::read_answer;
pub use clients::Clients;
pub use error::Error;
pub use limits::MAX_ANSWER_BYTES;
pub use retry_policy::RetryPolicy;
