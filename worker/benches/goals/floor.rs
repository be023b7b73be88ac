//! The floor: a bare HTTP client that sends the same requests and writes one segment a row, and no engine.

use crate::rows::{Act, Row};
use crate::servers::{Asked, MODEL, Seen, TOOLS};
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use bloomery_journal::segment;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What the floor does, one after the other.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Writes a segment.
    Write { first: u64, text: String },
    /// Sends a request, and reads the answer.
    Send { path: &'static str, headers: HeaderMap, body: Bytes },
}

/// The deeds of a run that was seen.
pub(crate) fn deeds(rows: &[Row], seen: &[Seen]) -> Vec<Deed> {
    let mut model = seen.iter().filter(|seen| seen.asked != Asked::Tool);
    let mut tools = seen.iter().filter(|seen| seen.asked == Asked::Tool);
    let mut deeds = Vec::new();
    for row in rows {
        deeds.push(Deed::Write { first: row.first, text: row.text.clone() });
        let (path, request) = match row.act {
            Act::Ask => (MODEL, model.next()),
            Act::Call => (TOOLS, tools.next()),
            Act::Nothing => continue,
        };
        deeds.push(send(path, request.expect("a row without its request")));
    }
    assert!(model.next().is_none() && tools.next().is_none(), "a request without its row");
    deeds
}

fn send(path: &'static str, Seen { headers, body, .. }: &Seen) -> Deed {
    Deed::Send { path, headers: sendable(headers.clone()), body: body.clone() }
}

/// Does everything, on a thread and a runtime of its own, as a worker has them.
pub(crate) fn run(deeds: &[Deed], base: &str, dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client =
            bloomery_http::client(base, Duration::from_secs(4), bloomery_http::ClientOptions::default()).unwrap();
        for deed in deeds {
            match deed {
                Deed::Write { first, text } => write(dir, *first, text.as_bytes()).unwrap(),
                Deed::Send { path, headers, body } => {
                    let request = client.post(format!("{base}{path}")).headers(headers.clone()).body(body.clone());
                    let answer = request.send().await.unwrap().error_for_status().unwrap();
                    drop(answer.bytes().await.unwrap());
                }
            }
        }
    });
}

/// Writes a segment as `docs/explanation/engine.md`, section 1, has it: synced under another name, linked to its own, the directory
/// synced.
pub(crate) fn write(dir: &Path, first: u64, content: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!(".tmp-{first}"));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::hard_link(&temporary, dir.join(segment::name(first)))?;
    File::open(dir)?.sync_all()?;
    fs::remove_file(&temporary)
}

/// Without what the client writes itself.
fn sendable(mut headers: HeaderMap) -> HeaderMap {
    for own in [header::HOST, header::CONTENT_LENGTH, header::USER_AGENT] {
        headers.remove(own);
    }
    headers
}
