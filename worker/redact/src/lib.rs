//! Redaction: keeps the values of secrets out of everything that is stored, shown or sent to a model (`docs/explanation/engine.md`, section 4).
//!
//! The values are those that this worker can read: the keys of models, the secrets that the Job binds and the token for
//! reports. Values shorter than [`MIN_VALUE_BYTES`] are ignored. Of a value with several lines, each line is a value too; of
//! one that is JSON, each credential in it. The redactor finds values as they are, as JSON and URLs escape them, in base64 at
//! any offset, and in hexadecimal digits. `[redacted: <name>]` takes their place.
//!
//! The redactor reads a file again when it changes, and keeps redacting the values that it held before.
//!
//! Texts are redacted where they enter, before anything is cut off them, because half a value is not found. They are redacted
//! again where they leave: the log of events, stdout, stderr, reports, records.
//!
//! A secret that only another program knows, above all an MCP server, cannot be found.

pub mod credential_names;
mod error;
mod event;
mod forms;
mod notation;
mod patterns;
pub mod plain_file;
mod redactor;
mod source;
mod writer;

pub use error::Error;
pub use forms::{MAX_VALUE_BYTES, MIN_VALUE_BYTES};
pub use redactor::Redactor;
pub use writer::Writer;

#[cfg(test)]
mod tests;
