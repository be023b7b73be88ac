//! The author of a note.

use serde::{Deserialize, Serialize};

/// The author of a note, recorded in the claim of the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The Job, as `namespace/name`.
    pub job: String,
    /// The run key, which is the name of the directory of the Job's log.
    pub run_key: String,
    /// The call ID. It begins with the number of the log line that requested the call. `0-0` for the first content that the Skill has.
    pub call: String,
    /// The time of the write, in RFC 3339.
    pub time: String,
}
