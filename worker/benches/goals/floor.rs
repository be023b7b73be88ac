//! The floor: a bare HTTP client without an engine. It sends the same requests, and writes one segment for each row.

use crate::rows::{Act, Row};
use crate::servers::{MODEL, Seen, TOOLS, Target};
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use bloomery_journal::segment;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// An action of the floor.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Writes a segment.
    Write { first: u64, text: String },
    /// Sends a request, and reads the answer.
    Send { path: &'static str, headers: HeaderMap, body: Bytes },
}

/// Returns the actions that repeat a run, from its rows and requests.
pub(crate) fn actions(rows: &[Row], seen: &[Seen]) -> Vec<Action> {
    let mut model = seen.iter().filter(|seen| seen.target != Target::Tool);
    let mut tools = seen.iter().filter(|seen| seen.target == Target::Tool);
    let mut actions = Vec::new();
    for row in rows {
        actions.push(Action::Write { first: row.first, text: row.text.clone() });
        let (path, request) = match row.act {
            Act::Ask => (MODEL, model.next()),
            Act::Call => (TOOLS, tools.next()),
            Act::Nothing => continue,
        };
        actions.push(send(path, request.expect("a row has no request")));
    }
    assert!(model.next().is_none() && tools.next().is_none(), "a request has no row");
    actions
}

fn send(path: &'static str, Seen { headers, body, .. }: &Seen) -> Action {
    Action::Send { path, headers: sendable(headers.clone()), body: body.clone() }
}

/// Performs all actions on a separate thread and runtime, as a worker does.
pub(crate) fn run(actions: &[Action], base: &str, dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client =
            bloomery_http::client(base, Duration::from_secs(4), bloomery_http::ClientOptions::default()).unwrap();
        for action in actions {
            match action {
                Action::Write { first, text } => write(dir, *first, text.as_bytes()).unwrap(),
                Action::Send { path, headers, body } => {
                    let request = client.post(format!("{base}{path}")).headers(headers.clone()).body(body.clone());
                    let answer = request.send().await.unwrap().error_for_status().unwrap();
                    drop(answer.bytes().await.unwrap());
                }
            }
        }
    });
}

/// Writes a segment as `docs/explanation/engine.md`, section 1, describes it: syncs it under a temporary name, links it to its name, and
/// syncs the directory.
pub(crate) fn write(dir: &Path, first: u64, content: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!(".tmp-{first}"));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::hard_link(&temporary, dir.join(segment::name(first)))?;
    File::open(dir)?.sync_all()?;
    fs::remove_file(&temporary)
}

/// Returns the headers without those that the client adds.
fn sendable(mut headers: HeaderMap) -> HeaderMap {
    for own in [header::HOST, header::CONTENT_LENGTH, header::USER_AGENT] {
        headers.remove(own);
    }
    headers
}
