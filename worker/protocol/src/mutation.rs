//! Mutations of the protocol. In each one, a worker breaks one rule.

/// The rule that a worker breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// Adds lines to the segment of its epoch.
    AppendToSegment,
    /// Adopts the lines that it finds under the name of its next segment, and continues after them.
    AdoptLines,
    /// Continues although the name of its next segment exists.
    ContinueSuperseded,
    /// Acts without a claim.
    ActBeforeClaim,
    /// Makes a call with an effect before its `tool.started` is durable.
    EffectBeforeDurable,
    /// Reports the end before it is durable.
    ReportBeforeDurable,
    /// Asks the model before the reserve of the request is durable.
    RequestBeforeDurable,
    /// Reports a position that includes lines that are not durable.
    PositionWithPending,
    /// Does not sync the directory after a link.
    NoSyncOfNames,
    /// Does not sync a segment before it is linked.
    NoSyncOfContent,
    /// Claims without syncing the directory that it has read.
    NoSyncOfPrefix,
    /// Renames a segment to its name, which replaces an existing segment.
    NamesReplaced,
    /// Repeats a call that an earlier epoch has started.
    StartedSentAgain,
    /// Removes the segments of a finished log.
    LogRemoved,
    /// Claims with a lock file, which is removed at the end.
    LockFile,
    /// Believes the approvals in the log.
    BelieveApprovals,
    /// Believes facts in the log about a call that people were asked about.
    BelieveFacts,
    /// Follows the rulings in the log, and does not rule again before a call.
    FollowRulings,
    /// Follows a ruling on a call that was started, so that the call is sent again.
    FollowLateRulings,
    /// Sends a read again that was started, and does not rule again before.
    FollowStartedReads,
    /// Believes the list of tools in the log about which tools only read.
    BelieveCatalogue,
    /// Believes the stored digest of the arguments.
    BelieveDigest,
    /// Adds lines to a log that was tampered with.
    ClaimTampered,
    /// The operator, not the worker, breaks a rule: it passes a decision only to the first attempt after it.
    DecisionPassedOnce,
    /// The storage, not the worker, breaks a rule: it loses an acknowledged name while attempts continue.
    StorageLosesName,
}
