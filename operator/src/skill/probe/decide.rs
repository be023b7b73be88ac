//! Decides on the pods of probes: pure.

use super::observe::ProbePod;
use super::subject::Wanted;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The seconds that the pod of a probe may take. The kubelet then ends it.
pub const DEADLINE_SECONDS: i64 = 240;

/// The age from which a pod that has not ended counts as failed: a pod that is never scheduled has no deadline.
const MAX_AGE: SignedDuration = SignedDuration::from_secs(DEADLINE_SECONDS + 60);

/// The delay before the second try.
const FIRST_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// The longest delay before a try.
const MAX_DELAY: SignedDuration = SignedDuration::from_mins(30);

/// The longest delay before a try for a server outside of the cluster: no change of an object shows that the server or its Secrets are
/// there.
const MAX_DELAY_OUTSIDE: SignedDuration = SignedDuration::from_mins(2);

/// The state of the verification of a Skill's MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeState {
    /// The Skill has no MCP server.
    NoServer,
    /// The latest report is about what the Skill and its server are now.
    Verified,
    /// A probe runs, or starts once the server is available.
    Pending,
    /// A probe is repeated after a failure, which the condition names.
    Repeated,
    /// The latest probe failed.
    Failed(String),
}

/// What to do with the pods of probes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The pods to delete.
    pub delete: Vec<ObjectMeta>,
    /// The number of the try to start.
    pub start: Option<u32>,
    /// The state.
    pub state: ProbeState,
    /// The time until the next decision, if no change of an object leads to it.
    pub requeue_after: Option<SignedDuration>,
}

/// Decides on the pods of a Skill's probes. `is_available` says whether the server accepts connections.
pub fn decide(wanted: Option<&Wanted>, pods: &[ProbePod], is_available: bool, now: Timestamp) -> Plan {
    let all = || pods.iter().map(|pod| pod.metadata.clone()).collect();
    let Some(wanted) = wanted else {
        return Plan { delete: all(), start: None, state: ProbeState::NoServer, requeue_after: None };
    };
    if wanted.is_verified {
        return Plan { delete: all(), start: None, state: ProbeState::Verified, requeue_after: None };
    }
    let (current, others): (Vec<&ProbePod>, Vec<&ProbePod>) = pods.iter().partition(|pod| pod.probe == wanted.probe);
    let Some(latest) = current.iter().max_by_key(|pod| pod.number) else {
        let delete = others.into_iter().map(|pod| pod.metadata.clone()).collect();
        return Plan { delete, start: is_available.then_some(1), state: ProbeState::Pending, requeue_after: None };
    };
    let longest = if wanted.is_outside { MAX_DELAY_OUTSIDE } else { MAX_DELAY };
    let mut plan = after(latest, longest, is_available, now);
    // The pod of the latest try has the number of tries and the cause of the failure, so it stays until the pod of the next try exists.
    let earlier = current.iter().filter(|pod| pod.number < latest.number);
    plan.delete = earlier.chain(&others).map(|pod| pod.metadata.clone()).collect();
    plan
}

/// Decides on the next step after the latest try. Deletes no pod.
fn after(latest: &ProbePod, longest: SignedDuration, is_available: bool, now: Timestamp) -> Plan {
    let state = match (&latest.end, &latest.problem) {
        (Some(end), _) => match &end.failure {
            Some(failure) => ProbeState::Failed(failure.clone()),
            // The report is recorded, and the cache does not show it yet.
            None => ProbeState::Pending,
        },
        (None, Some(problem)) => ProbeState::Failed(problem.clone()),
        (None, None) if latest.number > 1 => ProbeState::Repeated,
        (None, None) => ProbeState::Pending,
    };
    let ended = latest.end.as_ref().map_or_else(|| latest.created + MAX_AGE, |end| end.at);
    let due = ended + delay(latest.number).min(longest);
    if now < due {
        return Plan { delete: Vec::new(), start: None, state, requeue_after: Some(due.duration_since(now)) };
    }
    // A server that is not available wakes the Skill when it is.
    let start = is_available.then(|| latest.number.saturating_add(1));
    Plan { delete: Vec::new(), start, state, requeue_after: None }
}

/// Returns the delay before the try after this one.
fn delay(number: u32) -> SignedDuration {
    let doublings = number.saturating_sub(1).min(16);
    FIRST_DELAY.checked_mul(1 << doublings).unwrap_or(MAX_DELAY).min(MAX_DELAY)
}
