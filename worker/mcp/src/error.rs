//! The error of listing the tools of a server.

/// The reason that the tools of a server cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server gives no answer, or an answer that is not MCP. A retry may succeed.
    #[error("the tools of the MCP server {server} cannot be listed: {message}")]
    Unavailable {
        /// The URL of the server, or the name of its program.
        server: String,
        /// The reason, as a clause. "It" refers to the server.
        message: String,
    },
    /// The server is a program that cannot be started, or that ends before it answers. A retry would fail again.
    #[error("the tools of the MCP server {server} cannot be listed: {message}")]
    ProgramFailed {
        /// The name of the program.
        server: String,
        /// The reason, as a clause. "It" refers to the server.
        message: String,
    },
    /// The server redirects, or requires credentials that do not exist. A retry would fail again.
    #[error("the tools of the MCP server {server} cannot be listed: {message}")]
    Refused {
        /// The URL of the server, or the name of its program.
        server: String,
        /// The reason, as a clause. "It" refers to the server.
        message: String,
    },
    /// The list exceeds a limit. A retry succeeds only after the server changed.
    #[error("the tools of the MCP server {server} cannot be used: {message}")]
    Unusable {
        /// The URL of the server, or the name of its program.
        server: String,
        /// The reason, as a clause. "It" refers to the server.
        message: String,
    },
}
