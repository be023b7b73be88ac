use super::client::SendError;
use super::*;
use crate::stop::StopReason;
use bloomery_crds::Digest;
use bloomery_crds::children::{ChildProgress, ChildRequest, ChildState, VisibleSkill};
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{MemorySurvey, ParkReason, Report, ServerToken};
use bloomery_crds::run::JobIdentity;
use bloomery_crds::v1alpha1::{Gates, Limits, LogPosition, Usage};
use bloomery_mcp::ServerTokens;
use bloomery_redact::Redactor;
use bloomery_testkit::report_server::{Reply, ReportServer};
use rstest::rstest;
use std::fs;
use std::path::PathBuf;

/// A time limit that no test reaches.
const LONG: Duration = Duration::from_mins(1);

pub(super) fn projection(events: u64) -> Projection {
    Projection {
        phase: Phase::Running,
        outcome: None,
        result: None,
        gates: Gates::default(),
        features: Vec::new(),
        workflows: Vec::new(),
        waiting_for: None,
        tool_names: Vec::new(),
        replies_heard: 0,
        stray_replies: Vec::new(),
        remarks: Vec::new(),
        tools_changed: false,
        usage: Usage::default(),
        log: LogPosition { path: "jobs/k-1".into(), events, head: Digest::of_bytes(b"") },
    }
}

fn identity() -> Identity {
    let job = JobIdentity { namespace: "acme".into(), name: "refund".into(), uid: "uid-j".into() };
    Identity { job, attempt: 2, epoch: 3 }
}

/// A test stand: the report endpoint of an operator, and what a reporter needs to use it.
struct Stand {
    operator: ReportServer,
    dir: tempfile::TempDir,
    stop: Stop,
    inbox: Arc<DecisionInbox>,
    desk: Arc<ChildDesk>,
}

impl Stand {
    async fn with(script: impl IntoIterator<Item = Reply>) -> Self {
        let stand = Self {
            operator: ReportServer::start(script).await,
            dir: tempfile::tempdir().unwrap(),
            stop: Stop::default(),
            inbox: Arc::default(),
            desk: Arc::new(ChildDesk::new(&[])),
        };
        fs::write(stand.token(), "token-1\n").unwrap();
        stand
    }

    fn token(&self) -> PathBuf {
        self.dir.path().join("token")
    }

    fn client(&self) -> Client {
        Client::new(&self.operator.endpoint, self.token(), Redactor::default()).unwrap()
    }

    fn reporter(&self) -> Reporter {
        self.reporter_with(SurveyLink::unconnected())
    }

    fn reporter_with(&self, link: SurveyLink) -> Reporter {
        let (client, inbox) = (self.client(), Arc::clone(&self.inbox));
        Reporter::start(client, identity(), projection(1), self.stop.clone(), (inbox, Arc::clone(&self.desk), link))
    }

    async fn send(&self) -> Result<bloomery_crds::report::Directives, SendError> {
        self.client().send(&report()).await
    }
}

fn report() -> Report {
    let Identity { job, attempt, epoch } = identity();
    Report {
        job,
        attempt,
        epoch,
        projection: projection(1),
        waiting: None,
        hold: None,
        memory: None,
        children: Vec::new(),
        wait_seconds: 0,
        end: None,
    }
}

#[tokio::test]
async fn the_token_for_the_mcp_server_in_a_response_is_taken_and_redacted() {
    let stand = Stand::with([]).await;
    let token = ServerToken { token: "e30.e30.signature-of-the-token".into(), valid_seconds: 540 };
    *stand.operator.server_token.lock().unwrap() = Some(token);
    let redactor = Redactor::default();
    let client = stand.client().with_server_tokens(ServerTokens::new(redactor.clone()));
    assert_eq!(client.send(&report()).await.unwrap().server_token, None);
    assert_eq!(redactor.redact_text("e30.e30.signature-of-the-token"), "e30.e30.[redacted: server token]");
}

#[tokio::test]
async fn each_report_has_the_identity_and_the_current_token() {
    let stand = Stand::with([]).await;
    let reporter = stand.reporter();
    let first = stand.operator.until_received(|received| !received.is_empty()).await.remove(0);
    assert_eq!(first.token, "Bearer token-1");
    assert_eq!((first.report.job, first.report.attempt, first.report.epoch), (identity().job, 2, 3));
    fs::write(stand.token(), "token-2").unwrap();
    reporter.waiting(Some(ExternalWait::McpUnavailable { message: "refused".into() }));
    let second = stand.operator.until_received(|received| received.len() > 1).await.remove(1);
    assert_eq!(second.token, "Bearer token-2");
    assert_eq!(second.report.waiting, Some(ExternalWait::McpUnavailable { message: "refused".into() }));
}

#[rstest]
#[case(vec![Reply::Status(409), Reply::Status(425)])]
#[case(vec![Reply::Status(500), Reply::Redirect])]
#[case(vec![Reply::AckLess, Reply::Flood])]
#[case(vec![Reply::Status(401)])]
#[case::a_replica_that_cannot_read_it(vec![Reply::Status(422); 5])]
#[tokio::test]
async fn an_end_is_reported_until_all_events_are_acknowledged(#[case] script: Vec<Reply>) {
    let refused = script.len();
    let stand = Stand::with(script).await;
    assert!(stand.reporter().end(projection(9), PodEnd::Finished, LONG).await);
    let received = stand.operator.received();
    assert!(received.len() > refused, "{received:?}");
    let last = &received.last().unwrap().report;
    assert_eq!((last.end.clone(), last.projection.log.events), (Some(PodEnd::Finished), 9));
    assert!(stand.stop.requested().is_none());
}

#[rstest]
#[case(401)]
#[case(404)]
#[tokio::test]
async fn permanent_refusals_end_the_wait_for_an_acknowledgement(#[case] status: u16) {
    let stand = Stand::with(std::iter::repeat_n(Reply::Status(status), 100)).await;
    assert!(!stand.reporter().end(projection(9), PodEnd::Finished, LONG).await);
    assert!(stand.operator.received().len() > 1);
}

/// The operator does not acknowledge the last event, but cancels the Job.
#[tokio::test]
async fn a_cancellation_acknowledges_the_end_of_a_parked_pod() {
    let stand = Stand::with([Reply::AckLess, Reply::AckLess, Reply::CancelAckLess]).await;
    let parked = PodEnd::Parked(ParkReason::Approval);
    assert!(stand.reporter().end(projection(9), parked, LONG).await);
    assert_eq!(stand.operator.received().len(), 3);
}

#[tokio::test]
async fn a_state_that_is_not_acknowledged_completely_is_not_repeated() {
    let stand = Stand::with([Reply::AckLess]).await;
    let reporter = stand.reporter();
    stand.operator.until_received(|received| received.len() == 1).await;
    assert!(reporter.end(projection(2), PodEnd::Finished, LONG).await);
    assert_eq!(stand.operator.received().len(), 2);
}

#[tokio::test]
async fn an_end_is_reported_even_if_its_events_are_acknowledged() {
    let stand = Stand::with([]).await;
    let reporter = stand.reporter();
    stand.operator.until_received(|received| received.len() == 1).await;
    assert!(reporter.end(projection(1), PodEnd::Finished, LONG).await);
    assert_eq!(stand.operator.received().len(), 2);
}

#[tokio::test]
async fn a_replaced_state_is_not_sent() {
    let stand = Stand::with([]).await;
    let reporter = stand.reporter();
    stand.operator.until_received(|received| received.len() == 1).await;
    for events in 2..20 {
        reporter.state_changed(projection(events));
    }
    assert!(reporter.end(projection(20), PodEnd::Finished, LONG).await);
    let events: Vec<u64> = stand.operator.received().iter().map(|one| one.report.projection.log.events).collect();
    assert_eq!(events, [1, 20]);
}

#[tokio::test]
async fn a_superseded_attempt_is_stopped() {
    let stand = Stand::with([Reply::Status(410)]).await;
    let reporter = stand.reporter();
    assert_eq!(stand.stop.wait().await.reason, StopReason::Superseded);
    assert!(!reporter.end(projection(2), PodEnd::Finished, LONG).await);
    assert_eq!(stand.operator.received().len(), 1);
}

#[rstest]
#[case(Reply::Cancel, StopReason::Cancelled)]
#[case(Reply::Park, StopReason::Suspended)]
#[case(Reply::SkillDeleted, StopReason::SkillDeleted)]
#[tokio::test]
async fn a_directive_in_any_response_requests_a_stop_once(#[case] reply: Reply, #[case] reason: StopReason) {
    let stand = Stand::with([Reply::Ack, reply, reply]).await;
    let reporter = stand.reporter();
    stand.operator.until_received(|received| received.len() == 1).await;
    assert!(stand.stop.requested().is_none());
    reporter.waiting(Some(ExternalWait::McpUnavailable { message: "refused".into() }));
    let asked = stand.stop.wait().await;
    assert_eq!(asked.reason, reason);
    reporter.waiting(None);
    stand.operator.until_received(|received| received.len() == 3).await;
    assert!(reporter.end(projection(2), PodEnd::Finished, LONG).await);
    assert_eq!(stand.stop.requested().unwrap().since, asked.since);
}

#[tokio::test]
async fn a_heartbeat_is_sent_when_nothing_changed() {
    let stand = Stand::with([Reply::Ack, Reply::Cancel]).await;
    let _reporter = stand.reporter();
    assert_eq!(stand.stop.wait().await.reason, StopReason::Cancelled);
    let received = stand.operator.received();
    assert_eq!(
        (received.len(), received[0].report.projection.log.events),
        (2, received[1].report.projection.log.events)
    );
}

#[tokio::test]
async fn an_end_that_contradicts_an_accepted_report_is_given_up() {
    let stand = Stand::with([Reply::Status(412), Reply::Status(412), Reply::Status(412), Reply::Status(412)]).await;
    let reporter = stand.reporter();
    assert!(!reporter.end(projection(2), PodEnd::Finished, LONG).await);
    assert!(stand.stop.requested().is_none());
    assert!((4..=5).contains(&stand.operator.received().len()));
}

#[tokio::test]
async fn an_unreachable_operator_does_not_block_the_run() {
    let mut stand = Stand::with([]).await;
    // Nothing listens on port 9.
    stand.operator.endpoint.url = "https://localhost:9/v1/reports".into();
    let reporter = stand.reporter();
    reporter.state_changed(projection(2));
    assert!(!reporter.end(projection(3), PodEnd::Finished, Duration::from_millis(50)).await);
}

#[tokio::test]
async fn a_report_is_sent_only_to_a_server_with_the_certificate_of_the_run_document() {
    let mut stand = Stand::with([]).await;
    stand.operator.endpoint.ca = ReportServer::start([]).await.endpoint.ca;
    let failure = stand.send().await.unwrap_err();
    assert!(matches!(&failure, SendError::Unreachable(message) if message.contains("certificate")), "{failure}");
    stand.operator.endpoint.url = stand.operator.endpoint.url.replace("https", "http");
    assert!(matches!(stand.send().await, Err(SendError::Unreachable(_))));
    assert!(stand.operator.received().is_empty());
}

#[tokio::test]
async fn responses_are_bounded_and_redirects_are_not_followed() {
    let stand = Stand::with([Reply::Redirect, Reply::Flood, Reply::Status(503)]).await;
    assert!(matches!(stand.send().await, Err(SendError::Refused { status, .. }) if status == 307));
    assert!(matches!(stand.send().await, Err(SendError::Unreachable(message)) if message.contains("larger")));
    let refused = stand.send().await.unwrap_err().to_string();
    assert!(refused.contains("503") && refused.contains("failed by the script"), "{refused}");
    assert_eq!(stand.operator.received().len(), 3);
    fs::remove_file(stand.token()).unwrap();
    assert!(stand.send().await.unwrap_err().to_string().contains("token"));
}

#[rstest]
#[case("", "holds no certificate")]
#[case("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", "not a PEM certificate")]
#[tokio::test]
async fn an_invalid_certificate_is_an_error(#[case] ca: &str, #[case] says: &str) {
    let mut stand = Stand::with([]).await;
    stand.operator.endpoint.ca = ca.into();
    let refused = Client::new(&stand.operator.endpoint, stand.token(), Redactor::default()).unwrap_err();
    assert!(refused.to_string().contains(says), "{refused}");
}

#[tokio::test]
async fn a_survey_is_sent_once_and_again_only_if_its_report_failed() {
    let stand = Stand::with([Reply::Status(500)]).await;
    *stand.operator.unneeded.lock().unwrap() = vec!["b".to_owned(), "c".to_owned()];
    let (surveys, latest) = watch::channel(None);
    let (prune, to_prune) = std::sync::mpsc::channel();
    let prunable = vec!["a".to_owned(), "b".to_owned()];
    surveys.send_replace(Some(MemorySurvey { bytes: 7, prunable, ..MemorySurvey::default() }));
    let reporter = stand.reporter_with(SurveyLink { surveys: latest, prune });
    stand.operator.until_received(|received| received.len() == 2).await;
    reporter.waiting(Some(ExternalWait::McpUnavailable { message: "refused".into() }));
    let received = stand.operator.until_received(|received| received.len() > 2).await;
    let sizes: Vec<Option<u64>> =
        received[..3].iter().map(|received| received.report.memory.as_ref().map(|memory| memory.bytes)).collect();
    assert_eq!(sizes, [Some(7), Some(7), None]);
    assert_eq!(to_prune.recv().unwrap(), ["b"]);
}

pub(super) fn child_request() -> ChildRequest {
    ChildRequest {
        call: "7-0".into(),
        digest: Digest::of_bytes(b""),
        skill: "billing".into(),
        goal: "Refund".into(),
        resources: Vec::new(),
        limits: Limits::default(),
    }
}

#[tokio::test]
async fn a_report_that_is_held_open_is_given_up_when_the_state_changes() {
    let stand = Stand::with([]).await;
    let reporter = stand.reporter();
    reporter.children(vec![child_request()]);
    stand.operator.until_received(|received| received.iter().any(|received| received.report.wait_seconds > 0)).await;
    // The operator holds the report open for longer.
    let within = Duration::from_secs(10);
    assert!(reporter.end(projection(2), PodEnd::Parked(ParkReason::Children), within).await);
    let last = stand.operator.received().pop().unwrap().report;
    assert_eq!((last.wait_seconds, last.children.as_slice()), (0, [child_request()].as_slice()));
}

#[tokio::test]
async fn the_end_of_a_child_reaches_the_desk_and_an_ended_job_requests_no_child() {
    let stand = Stand::with([]).await;
    let reporter = stand.reporter();
    reporter.children(vec![child_request()]);
    let deleted = ChildState { call: "7-0".into(), job: "refund-0".into(), state: ChildProgress::Deleted };
    stand.operator.children.send_replace(vec![deleted.clone()]);
    assert_eq!(stand.desk.end_of("7-0").await, deleted);
    assert!(reporter.end(projection(2), PodEnd::Finished, LONG).await);
    assert!(stand.operator.received().pop().unwrap().report.children.is_empty());
}

#[tokio::test]
async fn the_skills_are_read_page_by_page_with_the_token_of_the_pod() {
    let stand = Stand::with([]).await;
    let skill = |name: &str| VisibleSkill { name: name.into(), ..VisibleSkill::default() };
    *stand.operator.skills.lock().unwrap() = ["a", "b", "c"].map(skill).to_vec();
    let first = stand.client().skills(None).await.unwrap();
    assert_eq!((first.skills.len(), first.next.as_deref()), (2, Some("b")));
    let second = stand.client().skills(first.next.as_deref()).await.unwrap();
    assert_eq!((second.skills, second.next), (vec![skill("c")], None));
}
