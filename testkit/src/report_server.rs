//! The operator's report endpoint, over TLS. It records the reports and answers as a script says.

use crate::tls::{self, TlsListener};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bloomery_crds::children::{ChildProgress, ChildState, SKILLS_PATH, SkillPage, VisibleSkill};
use bloomery_crds::probe::{self, ProbeReceipt, ProbeReport, TokenRequest};
use bloomery_crds::report::{Directives, PATH, PodEnd, Report, ServerToken};
use bloomery_crds::run::{GivenReply, JobIdentity, ReportEndpoint};
use bloomery_crds::v1alpha1::{Limits, LogPosition, ToolPolicy};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The answer to one report.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    /// Acknowledges all events.
    Ack,
    /// Acknowledges all events but the last.
    AckLess,
    /// Acknowledges all events and cancels the Job.
    Cancel,
    /// Acknowledges all events and says that the Skill is deleted.
    SkillDeleted,
    /// Acknowledges all events but the last, and cancels the Job.
    CancelAckLess,
    /// Acknowledges all events and says that the namespace is suspended.
    Park,
    /// Fails with an HTTP status and the body `failed by the script`.
    Status(u16),
    /// Redirects to the same path.
    Redirect,
    /// Sends a body of 1 MiB, which is more than a client reads.
    Flood,
}

/// A report that the server received.
#[derive(Debug, Clone)]
pub struct Received {
    /// The value of the `Authorization` header.
    pub token: String,
    /// The report.
    pub report: Report,
}

/// The report endpoint. It follows a script of replies, and afterwards acknowledges everything. Clones share its state.
#[derive(Debug, Clone)]
pub struct ReportServer {
    script: Arc<Mutex<VecDeque<Reply>>>,
    received: watch::Sender<Vec<Received>>,
    /// The reports of probes so far.
    pub probes: Arc<Mutex<Vec<ProbeReport>>>,
    /// The replies of people in the Job's spec. [`Reply::Ack`] returns those that the worker has not received.
    pub replies: Arc<Mutex<Vec<GivenReply>>>,
    /// The run keys that no Job needs. [`Reply::Ack`] returns those that the worker may prune.
    pub unneeded: Arc<Mutex<Vec<String>>>,
    /// The limits in the Job's spec. [`Reply::Ack`] returns them.
    pub limits: Arc<Mutex<Option<Limits>>>,
    /// The tools that a later revision of the Skill blocks. [`Reply::Ack`] returns them.
    pub blocked_tools: Arc<Mutex<Vec<String>>>,
    /// The tool policy of the tenant. [`Reply::Ack`] returns it.
    pub tenant_tools: Arc<Mutex<Option<ToolPolicy>>>,
    /// The token for the MCP server. [`Reply::Ack`] and the answer to a probe return it.
    pub server_token: Arc<Mutex<Option<ServerToken>>>,
    /// The states of children. [`Reply::Ack`] returns those that the report names, after it has waited for an end as the report asks.
    pub children: watch::Sender<Vec<ChildState>>,
    /// The Skills that the Job may invoke, sorted by name. Each page has two of them.
    pub skills: Arc<Mutex<Vec<VisibleSkill>>>,
    /// The URL of the server, and the CA of its certificate.
    pub endpoint: ReportEndpoint,
}

impl ReportServer {
    /// Starts the server on a free port.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let (acceptor, ca) = tls::localhost();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}{PATH}", tcp.local_addr().unwrap().port());
        let server = Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            received: watch::Sender::new(Vec::new()),
            probes: Arc::default(),
            replies: Arc::default(),
            unneeded: Arc::default(),
            limits: Arc::default(),
            blocked_tools: Arc::default(),
            tenant_tools: Arc::default(),
            server_token: Arc::default(),
            children: watch::Sender::new(Vec::new()),
            skills: Arc::default(),
            endpoint: ReportEndpoint { url, ca },
        };
        let router = Router::new()
            .route(PATH, post(receive))
            .route(SKILLS_PATH, get(list_skills))
            .route(probe::PATH, post(receive_probe))
            .route(&format!("{}{}", probe::PATH, probe::TOKEN_SUFFIX), post(give_token))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(TlsListener::new(tcp, acceptor), router).await });
        server
    }

    /// Returns the endpoint for the reports of probes.
    pub fn probe_endpoint(&self) -> ReportEndpoint {
        ReportEndpoint { url: self.endpoint.url.replace(PATH, probe::PATH), ..self.endpoint.clone() }
    }

    /// Answers the next report with this reply, before the rest of the script.
    pub fn answer_next(&self, reply: Reply) {
        self.script.lock().unwrap().push_front(reply);
    }

    /// Returns all reports so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.borrow().clone()
    }

    /// Returns the last position in the log of a Job that was reported, as the operator gives it to the next attempt.
    pub fn log_position(&self, job: &JobIdentity) -> Option<LogPosition> {
        let received = self.received.borrow();
        let of_job = received.iter().map(|received| &received.report).filter(|report| report.job == *job);
        // The log of a superseded attempt is not the log of the Job.
        let followed = of_job.filter(|report| report.end != Some(PodEnd::Superseded));
        followed.map(|report| &report.projection.log).max_by_key(|log| log.events).cloned()
    }

    /// Returns the identity of the `number`-th Job with the name `refund`. Each has a different UID.
    pub fn job(number: u32) -> JobIdentity {
        JobIdentity { namespace: "acme".into(), name: "refund".into(), uid: format!("uid-j{number}") }
    }

    /// Returns the states of the children of a report, once one of them has ended or the time is over.
    async fn children_of(&self, calls: &[String], within: Duration) -> Vec<ChildState> {
        let of_report = |states: &Vec<ChildState>| -> Vec<ChildState> {
            states.iter().filter(|child| calls.contains(&child.call)).cloned().collect()
        };
        let has_ended =
            |states: &Vec<ChildState>| of_report(states).iter().any(|child| child.state != ChildProgress::Running);
        let mut states = self.children.subscribe();
        if !within.is_zero() {
            let _ = tokio::time::timeout(within, states.wait_for(has_ended)).await;
        }
        of_report(&states.borrow())
    }

    /// Waits until the reports meet a condition. Returns them.
    pub async fn until_received(&self, condition: impl FnMut(&Vec<Received>) -> bool) -> Vec<Received> {
        self.received.subscribe().wait_for(condition).await.unwrap().clone()
    }
}

async fn receive_probe(State(server): State<ReportServer>, Json(report): Json<ProbeReport>) -> Response {
    let reply = server.script.lock().unwrap().pop_front().unwrap_or(Reply::Ack);
    if let Reply::Status(code) = reply {
        return (StatusCode::from_u16(code).unwrap(), "failed by the script").into_response();
    }
    server.probes.lock().unwrap().push(report);
    Json(ProbeReceipt {}).into_response()
}

async fn give_token(State(server): State<ReportServer>, Json(request): Json<TokenRequest>) -> Response {
    let token = server.server_token.lock().unwrap().clone().filter(|_| !request.pod.is_empty());
    token.map_or(StatusCode::NOT_FOUND.into_response(), |token| Json(token).into_response())
}

async fn list_skills(State(server): State<ReportServer>, RawQuery(query): RawQuery) -> Response {
    let after = query.and_then(|query| query.strip_prefix("after=").map(str::to_owned)).unwrap_or_default();
    let mut skills = server.skills.lock().unwrap().clone();
    skills.retain(|skill| skill.name > after);
    let has_more = skills.len() > 2;
    skills.truncate(2);
    let next = skills.last().map(|skill| skill.name.clone()).filter(|_| has_more);
    Json(SkillPage { skills, next }).into_response()
}

async fn receive(State(server): State<ReportServer>, headers: HeaderMap, Json(report): Json<Report>) -> Response {
    let reply = server.script.lock().unwrap().pop_front().unwrap_or(Reply::Ack);
    let token = headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    let (events, received_replies) = (report.projection.log.events, report.projection.replies_heard);
    let mut replies = server.replies.lock().unwrap().clone();
    replies.retain(|reply| reply.nth > received_replies);
    let mut prune = report.memory.as_ref().map(|memory| memory.prunable.clone()).unwrap_or_default();
    prune.retain(|key| server.unneeded.lock().unwrap().contains(key));
    let limits = server.limits.lock().unwrap().clone();
    let blocked_tools = server.blocked_tools.lock().unwrap().clone();
    let tenant_tools = server.tenant_tools.lock().unwrap().clone();
    let server_token = server.server_token.lock().unwrap().clone();
    let calls: Vec<String> = report.children.iter().map(|child| child.call.clone()).collect();
    let within = Duration::from_secs(report.wait_seconds.into());
    server.received.send_modify(|received| received.push(Received { token, report }));
    match reply {
        Reply::Ack => {
            let children = server.children_of(&calls, within).await;
            let given = Directives {
                ack: events,
                children,
                replies,
                prune,
                limits,
                blocked_tools,
                tenant_tools,
                server_token,
                ..Directives::default()
            };
            Json(given).into_response()
        }
        Reply::AckLess => Json(json!({ "ack": events - 1 })).into_response(),
        Reply::Cancel => Json(json!({ "ack": events, "cancel": true })).into_response(),
        Reply::SkillDeleted => Json(json!({ "ack": events, "skillDeleted": true })).into_response(),
        Reply::CancelAckLess => Json(json!({ "ack": events - 1, "cancel": true })).into_response(),
        Reply::Park => Json(json!({ "ack": events, "park": true })).into_response(),
        Reply::Status(code) => (StatusCode::from_u16(code).unwrap(), "failed by the script").into_response(),
        Reply::Redirect => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, PATH)]).into_response(),
        Reply::Flood => "x".repeat(1 << 20).into_response(),
    }
}
