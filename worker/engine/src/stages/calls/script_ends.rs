//! The ends of the latest calls of scripts. A validation tests the script of a feature by them.

use bloomery_crds::text::bounded;
use std::collections::BTreeMap;

/// The longest quote of a failure, in bytes.
const MAX_QUOTE_BYTES: usize = 256;

/// The beginning of the result of a script that ended with another exit code than 0. The bridge writes it.
const EXIT_CODE: &str = "{\"exitCode\":";

/// The ends of the latest calls of scripts, by tool: nothing for exit code 0, or else a clause about the script. A call that was not made
/// has no end.
pub type ScriptEnds = BTreeMap<String, Option<String>>;

/// Returns a clause about a script whose call failed. A script that ends with another exit code than 0 is a failed call. `text` is the
/// result of the server.
pub(super) fn failure_clause(text: &str) -> String {
    match exit_code(text) {
        Some(code) => format!("ended with exit code {code}"),
        None => format!("did not end with exit code 0: {}", bounded(text, MAX_QUOTE_BYTES)),
    }
}

fn exit_code(text: &str) -> Option<i32> {
    text.strip_prefix(EXIT_CODE)?.split([',', '}']).next()?.trim().parse().ok()
}
