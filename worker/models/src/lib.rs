//! Clients of language models: OpenAI chat completions and Anthropic Messages, as any compatible server speaks them.
//!
//! [`Clients`] asks the Models of a Job. A request to a model has no side effect, so it is retried, with growing delays, as long
//! as a retry can help: [`Patience`] says for how long. Each wait is reported. A Model may have fallbacks, which are asked by
//! turns. An answer that cannot be read is returned as an [`Error`] at once, because the engine counts those.

mod anthropic;
mod attempt;
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
mod patience;
mod protocol;
mod provider;
mod request_writer;
mod retry_after;
mod sse;
mod stream;
mod transports;

#[cfg(fuzzing)]
pub use client::read_answer;
pub use clients::Clients;
pub use error::Error;
pub use limits::MAX_ANSWER_BYTES;
pub use patience::Patience;
