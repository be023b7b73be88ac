//! Protocols that lack one rule each.

/// What a worker does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// Adds lines to the segment of its epoch.
    AppendToSegment,
    /// Takes the lines that it finds under the name it wanted for its own, and goes on behind them.
    AdoptLines,
    /// Goes on although the name that it wanted exists.
    LoserGoesOn,
    /// Begins to act without a claim.
    ActBeforeClaim,
    /// Makes a call with effect before its `started` is durable.
    EffectBeforeDurable,
    /// Reports the end before it is durable.
    ReportBeforeDurable,
    /// Does not sync the directory after a link.
    NoSyncOfNames,
    /// Does not sync a segment before it is linked.
    NoSyncOfContent,
    /// Claims without syncing the directory that it has read.
    NoSyncOfPrefix,
    /// Renames a segment to its name, which replaces what had it.
    NamesReplaced,
    /// Sends a call again that an earlier epoch has started.
    StartedSentAgain,
    /// Removes the segments of a log that has ended.
    LogRemoved,
    /// Claims by a file of its own, which is removed at the end.
    LockFile,
    /// Not the worker's: the storage loses a name that it has acknowledged, and its clients live on.
    StorageForgets,
}
