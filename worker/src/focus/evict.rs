//! Removes entries when the budget is spent.

use bloomery_journal::files::{Files, Usage};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The age at which a temporary file is taken for a leftover of a killed worker. A write takes seconds.
const MIN_LEFTOVER_AGE: Duration = Duration::from_mins(10);

/// Removes the least recently used entries until the others fit into `budget`, in bytes. The entries in `newest` are never removed.
///
/// Errors are ignored: an entry that cannot be read or removed stays, and the next worker retries.
pub(super) fn to_budget(files: &impl Files, dir: &Path, budget: u64, newest: &[&str]) {
    let Ok(names) = files.list(dir) else { return };
    let mut entries: Vec<(Usage, String)> =
        names.into_iter().filter_map(|name| Some((files.usage(&dir.join(&name)).ok()?, name))).collect();
    entries.sort_by_key(|(usage, _)| usage.used);
    let mut total: u64 = entries.iter().map(|(usage, _)| usage.bytes).sum();
    for (usage, name) in entries {
        let is_removable = if name.starts_with('.') {
            is_leftover(usage.used)
        } else {
            total > budget && !newest.contains(&name.as_str())
        };
        if is_removable && files.remove(&dir.join(&name)).is_ok() {
            total = total.saturating_sub(usage.bytes);
        }
    }
}

fn is_leftover(used: SystemTime) -> bool {
    SystemTime::now().duration_since(used).is_ok_and(|age| age > MIN_LEFTOVER_AGE)
}
