//! Redaction: keeps the values of secrets out of everything that is stored, shown or sent to a model (`docs/explanation/engine.md`, section 4).
//!
//! The redactor searches for the values that this worker can read: the keys of models, the secrets that the Job binds and the
//! token for reports. It ignores values shorter than [`MIN_VALUE_BYTES`]. In a value with several lines, each line is a value,
//! too. In a JSON value, each credential is a value, too. The redactor finds values in plain text, with JSON or URL escapes, in base64
//! at any offset, and in hexadecimal digits. It replaces each value with the mark `[redacted: <name>]`.
//!
//! The redactor reads a file again when the file changes, and continues to redact the earlier values of the file.
//!
//! Texts are redacted when they enter the worker, before they are truncated, because a part of a value is not found. They are
//! redacted again when they leave it: in the event log, stdout, stderr, reports and records.
//!
//! The redactor cannot find a secret that only another program knows, such as an MCP server.

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
