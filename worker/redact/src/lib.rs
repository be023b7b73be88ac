//! Redaction: keeps the values of secrets out of everything that is stored, shown or sent to a model
//! (`docs/explanation/engine.md`, section 4).
//!
//! The redactor searches for the values that this worker can read: the keys of models, the secrets that the Job binds and the
//! token for reports. It ignores values shorter than [`MIN_VALUE_BYTES`]. Each line of a value with several lines
//! counts as a value of its own, and so does each credential in a JSON value. The redactor finds values in plain text, with JSON or
//! URL escapes, in base64 at any offset, and in hexadecimal digits. It replaces each value with the mark `[redacted: <name>]`.
//!
//! The redactor reads a file again when the file changes, and continues to redact the earlier values of the file.
//!
//! The worker redacts a text when it receives the text. It does so before it truncates the text, because the redactor does not find
//! a part of a value. The worker redacts again what it writes and sends: the event log, stdout, stderr, reports and records.
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
