//! The program of the MCP server, and the era of the protocol that it speaks.

use crate::connection::{Connection, Error};
use crate::message::Message;
use std::fmt;
use std::sync::Arc;

/// The request of the older era with which the bridge finds out the era. In a measurement with servers of npm and `PyPI`, all of them
/// answered it, also those of the newer era (`docs/explanation/mcp.md`).
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bloomery-bridge","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

/// The request of the newer era.
const DISCOVER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bloomery-bridge","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Sessions that begin with `initialize`. Each has a process of its own, because the state of a session belongs to a process.
    Sessions,
    /// Requests that are independent of each other. They share one process.
    Stateless,
}

/// The command line of the MCP server.
#[derive(Debug, Clone)]
pub(crate) struct Program(Arc<[String]>);

impl Program {
    pub(crate) fn new(argv: Vec<String>) -> Self {
        Self(argv.into())
    }

    /// Starts a process. In the newer era, several clients share the process.
    pub(crate) fn start(&self, era: Era) -> Result<Arc<Connection>, Error> {
        Connection::start(&self.0, era == Era::Stateless)
    }

    /// Finds out the era, with a process for each try. A program that speaks both eras gets sessions.
    ///
    /// # Errors
    /// If the program cannot be started, ends, or answers neither request.
    pub(crate) async fn era(&self) -> Result<Era, Error> {
        let refusal = match self.ask(Era::Sessions, INITIALIZE).await? {
            answer if answer.is_error() => answer.to_line(),
            _ => return Ok(Era::Sessions),
        };
        match self.ask(Era::Stateless, DISCOVER).await {
            Ok(answer) if !answer.is_error() => Ok(Era::Stateless),
            _ => Err(Error::Refused(refusal)),
        }
    }

    async fn ask(&self, era: Era, request: &str) -> Result<Message, Error> {
        let connection = self.start(era)?;
        let request = Message::read(request).ok_or(Error::Closed)?;
        let mut reply = connection.request(request).await?;
        let answer = reply.answer().await;
        connection.end().await;
        answer.and_then(|line| Message::read(&line)).ok_or(Error::Closed)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(" "))
    }
}
