//! Why the tools of a server cannot be listed.

/// Why the tools of a server cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server does not answer, or not as an MCP server. A retry may succeed.
    #[error("the MCP server at {url} cannot be asked for its tools: {message}")]
    Unavailable {
        /// The URL of the server.
        url: String,
        /// The reason.
        message: String,
    },
    /// The server is a program that cannot be started, or that ends before it answers. A retry would fail, too.
    #[error("the MCP server {url} cannot be asked for its tools: {message}")]
    ProgramFailed {
        /// The name of the program.
        url: String,
        /// The reason.
        message: String,
    },
    /// The server has moved, or requires credentials that do not exist. A retry would fail, too.
    #[error("the MCP server at {url} cannot be asked for its tools: {message}")]
    Refused {
        /// The URL of the server.
        url: String,
        /// The reason.
        message: String,
    },
    /// The list itself cannot be used, until the server changes.
    #[error("the MCP server at {url} lists tools that cannot be used: {message}")]
    Unusable {
        /// The URL of the server.
        url: String,
        /// The reason.
        message: String,
    },
}
