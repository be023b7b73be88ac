//! The sessions of clients, each with a process of its own.
//!
//! A process that speaks MCP over its standard streams has one client. So in the older era of the protocol, each session is a process.
//! A worker whose session has ended begins another one, so an idle session can be ended at any time.

use crate::connection::{Connection, Error};
use crate::program::{Era, Program};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The shortest and longest interval at which idle sessions are looked for.
const CHECK_INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// The reason that no session begins.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    /// All sessions are in use.
    #[error("all {0} sessions are in use: try again later")]
    Full(usize),
    /// The process cannot be started.
    #[error("the MCP server cannot be used: {0}")]
    Program(#[from] Error),
    /// There are no random numbers for the id of the session.
    #[error("cannot read random numbers: {0}")]
    Random(std::io::Error),
}

/// The sessions, and the process that all clients share in the newer era.
#[derive(Debug)]
pub(crate) struct Sessions {
    program: Program,
    era: Era,
    max: usize,
    idle: Duration,
    table: Mutex<BTreeMap<String, Arc<Connection>>>,
    shared: Mutex<Option<Arc<Connection>>>,
}

impl Sessions {
    pub(crate) fn new(program: Program, era: Era, max: usize, idle_seconds: u64) -> Self {
        let idle = Duration::from_secs(idle_seconds);
        Self { program, era, max, idle, table: Mutex::default(), shared: Mutex::default() }
    }

    /// Returns the era of the program.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Begins a session. If there are too many, the one that is idle for the longest time ends.
    pub(crate) fn begin(&self) -> Result<(String, Arc<Connection>), BeginError> {
        let mut table = self.table();
        table.retain(|_, connection| !connection.is_closed());
        if table.len() >= self.max {
            let idle = table.iter().filter_map(|(id, connection)| Some((connection.idle_since()?, id.clone())));
            let (_, id) = idle.min().ok_or(BeginError::Full(self.max))?;
            end_in_background(table.remove(&id));
        }
        let id = random_id().map_err(BeginError::Random)?;
        let connection = self.program.start(Era::Sessions)?;
        table.insert(id.clone(), Arc::clone(&connection));
        Ok((id, connection))
    }

    /// Returns the process of a session; `None` if the session has ended.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Connection>> {
        self.table().get(id).filter(|connection| !connection.is_closed()).cloned()
    }

    /// Returns the process that all clients share. Starts it if it does not run.
    pub(crate) fn shared(&self) -> Result<Arc<Connection>, Error> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = shared.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = self.program.start(Era::Stateless)?;
        *shared = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Ends a session. Returns whether it existed.
    pub(crate) fn end(&self, id: &str) -> bool {
        let connection = self.table().remove(id);
        let existed = connection.is_some();
        end_in_background(connection);
        existed
    }

    /// Ends sessions that have been idle for too long, for ever.
    pub(crate) async fn end_idle_sessions(self: Arc<Self>) {
        let [shortest, longest] = CHECK_INTERVALS;
        let mut checks = tokio::time::interval((self.idle / 4).clamp(shortest, longest));
        loop {
            checks.tick().await;
            let Some(limit) = Instant::now().checked_sub(self.idle) else { continue };
            let is_idle = |connection: &Connection| connection.idle_since().is_some_and(|since| since < limit);
            let ended: Vec<_> = self.table().extract_if(.., |_, connection| is_idle(connection)).collect();
            for (_, connection) in ended {
                end_in_background(Some(connection));
            }
        }
    }

    /// Ends all processes, and waits for their ends.
    pub(crate) async fn end_all(&self) {
        let mut connections: Vec<_> = std::mem::take(&mut *self.table()).into_values().collect();
        connections.extend(self.shared.lock().unwrap_or_else(PoisonError::into_inner).take());
        futures::future::join_all(connections.iter().map(|connection| connection.end())).await;
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Connection>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end_in_background(connection: Option<Arc<Connection>>) {
    if let Some(connection) = connection {
        tokio::spawn(async move { connection.end().await });
    }
}

/// Returns an id that cannot be guessed.
fn random_id() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes).to_string())
}
