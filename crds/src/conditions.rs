//! Conditions that kstatus, Argo CD and Flux read, and the one merge that writes them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strum::{Display, EnumString, IntoStaticStr};

/// Every condition type of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
pub enum ConditionType {
    /// The object is as it should be: a Skill can be used, a Job ended well, a Model can be called.
    Ready,
    /// Something is on its way or waited for. Present only while true, as kstatus has it.
    Reconciling,
    /// A person has to do something. Present only while true, as kstatus has it.
    Stalled,
    /// The spec makes sense and was compiled into a revision.
    Accepted,
    /// The tenant's memory is there.
    MemoryReady,
    /// The MCP server can be reached.
    McpAvailable,
    /// Whether all of the Skill holds as it is written, for a Job; present where it does not.
    SkillAsWritten,
    /// Whether a Job rests until a person has decided or answered, and people are asked. Present once it has.
    AwaitingPeople,
    /// Whether every reply has found its question, for a Job; present where one has not.
    RepliesTaken,
    /// Whether the last pod's end was reported, or only read from its termination message.
    Reported,
}

/// Every reason of ours: why a condition is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
pub enum Reason {
    /// Everything is as it should be.
    Ready,
    /// The spec was compiled.
    Compiled,
    /// The spec or what it names cannot be used; the message says which field.
    Invalid,
    /// An object of the name that is needed belongs to somebody else.
    NameTaken,
    /// Somebody has made an object of ours anew, with other content that cannot be changed.
    Replaced,
    /// The API server refused an object that is needed; the message says why.
    Refused,
    /// The memory claim is bound.
    Bound,
    /// The memory claim waits for the first pod that uses it, which blocks nothing.
    WaitingForFirstConsumer,
    /// The memory claim is not bound yet.
    ClaimPending,
    /// The memory claim lost its volume.
    ClaimLost,
    /// The memory cannot be written by the worker's user.
    NotWritable,
    /// The Skill has no MCP server, and needs none.
    NoMcpServer,
    /// The MCP server accepts connections.
    Available,
    /// The MCP server's pods are not ready yet.
    Progressing,
    /// The MCP server has not become ready in time.
    McpUnavailable,
    /// The Service that the Skill names does not exist.
    ServiceNotFound,
    /// The Service that the Skill names has not the port that it names.
    PortNotFound,
    /// The Skill that the Job names does not exist.
    SkillNotFound,
    /// The Skill that the Job names is not ready.
    SkillNotReady,
    /// The Model that the Skill names does not exist.
    ModelNotFound,
    /// The Model that the Skill names is not ready.
    ModelNotReady,
    /// The model does not answer, or refuses to.
    ModelUnavailable,
    /// A Secret, or a key of it, does not exist.
    SecretMissing,
    /// Workers could not report: the report endpoint has no certificate that they may trust.
    ReportUnavailable,
    /// The run document is larger than a pod may carry.
    TooLarge,
    /// The pod was made and has not reported yet.
    Starting,
    /// The pod cannot be scheduled.
    Unschedulable,
    /// The pod's image cannot be pulled.
    ImageUnavailable,
    /// The pod cannot be started; the message says why.
    PodNotStarting,
    /// The worker is at work.
    Running,
    /// The finalization gate rules on an answer.
    Finalizing,
    /// The worker parked, and the Job goes on in a new pod.
    Parked,
    /// The attempt before ended without an outcome, and a new one starts after a pause.
    BackOff,
    /// The node of the pod does not answer; no twin is started.
    NodeLost,
    /// The pod's end was reported by its worker.
    Reported,
    /// The pod's end was read from its termination message: the report did not arrive.
    ReportLost,
    /// The Job succeeded.
    Succeeded,
    /// The Job failed; the outcome says why.
    Failed,
    /// The goal is none that the Skill serves; the outcome says what it serves.
    OutOfDomain,
    /// A call waits until a person has decided.
    AwaitingApproval,
    /// A question waits until a person has answered.
    AwaitingReply,
    /// A reply answers no open question.
    UnknownQuestion,
    /// The Job ended before a reply was heard, or a call was begun that people let be made.
    JobEnded,
    /// The Job has ended, and the call that people were asked about was not begun.
    NotBegun,
    /// The Job is being cancelled.
    Cancelling,
    /// The Skill was deleted: the Job ends once its pod has.
    SkillDeleted,
    /// A person cancelled the Job.
    Cancelled,
    /// No pod runs while the namespace is suspended.
    Suspended,
    /// The Job that this one continues has not ended, or does not exist.
    ContinuedNotEnded,
    /// Nobody is asked to approve anything: what checks decisions is not installed as it was shipped.
    ApprovalPolicyMissing,
    /// Nobody could be asked to approve a call; it is tried again.
    NobodyAsked,
    /// Whoever has to agree has agreed.
    Approved,
    /// Whoever has to agree has not.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// The Job goes on, and waits for nobody.
    Resumed,
    /// The Job has ended, and waits for nobody.
    Ended,
    /// What the Job binds does not fit what the Skill declares; the message names every fault.
    ResourcesInvalid,
    /// Something that the Job binds does not exist yet.
    ResourceNotFound,
    /// The worker found that something of the Skill does not hold as it is written; the message says what.
    Differs,
    /// A person has to take the Job over; the outcome says why.
    Escalated,
}

/// What a controller saw: one condition, before times and generations are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Which condition.
    pub kind: ConditionType,
    /// Whether it holds; `None` is `Unknown`.
    pub holds: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// The sentence for people: what, which object, what to do.
    pub message: String,
}

impl Observation {
    /// A condition that holds.
    pub fn holds(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(true), reason, message: message.into() }
    }

    /// A condition that does not hold.
    pub fn fails(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(false), reason, message: message.into() }
    }
}

/// The health of an object, in the words of kstatus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nothing more will happen, and all is well.
    Ready(Reason, String),
    /// Something is on its way or waited for, people included.
    Reconciling(Reason, String),
    /// A person has to do something.
    Stalled(Reason, String),
}

impl Health {
    /// `Ready`, and `Reconciling` or `Stalled` where they hold.
    pub fn observations(self) -> Vec<Observation> {
        match self {
            Self::Ready(reason, message) => vec![Observation::holds(ConditionType::Ready, reason, message)],
            Self::Reconciling(reason, message) => vec![
                Observation::fails(ConditionType::Ready, reason, message.clone()),
                Observation::holds(ConditionType::Reconciling, reason, message),
            ],
            Self::Stalled(reason, message) => vec![
                Observation::fails(ConditionType::Ready, reason, message.clone()),
                Observation::holds(ConditionType::Stalled, reason, message),
            ],
        }
    }
}

/// Merges what was seen into the conditions that stand.
///
/// Transition times move only when a status does; types of ours that were not seen are dropped; conditions
/// of other writers stay. So a status in which nothing but time would change comes out equal, and the write
/// can be skipped.
pub fn merge(standing: &[Condition], seen: &[Observation], generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let mut merged: Vec<Condition> =
        seen.iter().map(|observation| condition(observation, standing, generation, now)).collect();
    merged.extend(standing.iter().filter(|old| old.type_.parse::<ConditionType>().is_err()).cloned());
    merged.sort_by(|a, b| a.type_.cmp(&b.type_));
    merged
}

/// Puts one condition among those that stand; all others stay.
pub fn put(standing: &[Condition], seen: &Observation, generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let name: &'static str = seen.kind.into();
    let mut merged: Vec<Condition> = standing.iter().filter(|old| old.type_ != name).cloned().collect();
    merged.push(condition(seen, standing, generation, now));
    merged.sort_by(|a, b| a.type_.cmp(&b.type_));
    merged
}

/// The condition of a type, where there is one.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    let name: &'static str = kind.into();
    conditions.iter().find(|condition| condition.type_ == name)
}

/// Whether a condition is `True`.
pub fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

fn condition(seen: &Observation, standing: &[Condition], generation: Option<i64>, now: &Time) -> Condition {
    let status = match seen.holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since =
        find(standing, seen.kind).filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
    Condition {
        type_: seen.kind.to_string(),
        status: status.to_owned(),
        reason: seen.reason.to_string(),
        // The API server refuses conditions with a message of more than 32768 characters; ours fit a screen.
        message: crate::text::bounded(&seen.message, 1024),
        observed_generation: generation,
        last_transition_time: since.unwrap_or_else(|| now.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Time {
        serde_json::from_value(serde_json::json!(format!("2026-01-01T00:00:{seconds:02}Z"))).unwrap()
    }

    #[test]
    fn nothing_but_time_changes_nothing() {
        let seen = Health::Reconciling(Reason::Starting, "pod made".into()).observations();
        let first = merge(&[], &seen, Some(1), &time(1));
        assert_eq!(merge(&first, &seen, Some(1), &time(9)), first);
    }

    #[test]
    fn one_condition_is_put_among_those_that_stand() {
        let first = merge(&[], &Health::Ready(Reason::Succeeded, "a".into()).observations(), Some(1), &time(1));
        let stray = |message: &str| Observation::fails(ConditionType::RepliesTaken, Reason::JobEnded, message);
        let second = put(&first, &stray("x"), Some(2), &time(2));
        assert_eq!((&second[0], second.len()), (&first[0], 2));
        let third = put(&second, &stray("y"), Some(3), &time(3));
        let told = find(&third, ConditionType::RepliesTaken).unwrap();
        assert_eq!((told.message.as_str(), &told.last_transition_time, third.len()), ("y", &time(2), 2));
        assert_eq!(put(&third, &stray("y"), Some(3), &time(9)), third);
    }

    #[test]
    fn transition_times_move_with_the_status_only() {
        let first = merge(&[], &Health::Reconciling(Reason::Starting, "a".into()).observations(), Some(1), &time(1));
        let second = merge(&first, &Health::Stalled(Reason::Failed, "b".into()).observations(), Some(2), &time(2));
        let ready = find(&second, ConditionType::Ready).unwrap();
        assert_eq!((ready.reason.as_str(), &ready.last_transition_time), ("Failed", &time(1)));
        assert!(find(&second, ConditionType::Reconciling).is_none());
        assert_eq!(find(&second, ConditionType::Stalled).unwrap().last_transition_time, time(2));
    }

    #[test]
    fn conditions_of_others_stay() {
        let foreign = Condition {
            type_: "example.com/Audited".into(),
            status: "True".into(),
            reason: "Yes".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: time(0),
        };
        let merged = merge(
            std::slice::from_ref(&foreign),
            &Health::Ready(Reason::Ready, "ok".into()).observations(),
            None,
            &time(1),
        );
        assert!(merged.contains(&foreign));
        assert!(is_true(&merged, ConditionType::Ready));
    }
}
