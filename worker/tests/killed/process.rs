//! A Job whose attempts are real processes, with the servers that they use.

use crate::shop::{Shop, Silence};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{GivenReply, JobPart, McpEndpoint, ModelEndpoint, Revision, Sealed, VERSION, seal};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_journal::segment;
use bloomery_testkit::recording_model::RecordingModel;
use bloomery_testkit::report_server::ReportServer;
use bloomery_testkit::twelve_steps;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdout, Command};

/// The time at which an attempt is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// When it has printed this number of events.
    Printed(usize),
    /// During this model request of the attempt, counted from 1.
    Asked(usize),
    /// During this tool call of the attempt, counted from 1.
    Called(usize, Silence),
}

/// Whether an attempt was killed, or ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    Yes,
    No,
}

/// A test stand: one Job, its memory, and the servers of its workers.
pub(crate) struct Stand {
    number: u32,
    dir: tempfile::TempDir,
    pub(crate) model: RecordingModel,
    pub(crate) shop: Shop,
    operator: ReportServer,
    /// The replies of people in the Job's spec.
    pub(crate) replies: Vec<GivenReply>,
    /// The whole lines that all attempts have printed.
    pub(crate) printed: String,
}

impl Stand {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("token"), "token").unwrap();
        fs::create_dir(dir.path().join("memory")).unwrap();
        Self {
            number: 0,
            dir,
            model: RecordingModel::start(twelve_steps::script()).await,
            shop: Shop::start().await,
            operator: ReportServer::start([]).await,
            replies: Vec::new(),
            printed: String::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Resets everything but the servers, for another Job.
    pub(crate) fn clear(&mut self) {
        fs::remove_dir_all(self.path("memory")).unwrap();
        fs::create_dir(self.path("memory")).unwrap();
        // A killed worker may still report, so the next Job has another UID.
        self.number += 1;
        self.shop.clear();
        self.replies.clear();
        self.printed.clear();
    }

    /// Returns the lines of the log.
    pub(crate) fn lines(&self) -> Vec<String> {
        let dir = self.path("memory/jobs/k-1");
        let mut lines: Vec<String> = Vec::new();
        while let Ok(content) = fs::read_to_string(dir.join(segment::name(lines.len() as u64 + 1))) {
            lines.extend(content.lines().map(str::to_owned));
        }
        lines
    }

    /// Runs an attempt until it ends or is killed.
    pub(crate) async fn run(&mut self, number: u32, when: Option<When>) -> Killed {
        let asked = self.model.requests().len();
        let (silent_request, silent_call) = match when {
            Some(When::Asked(request)) => (Some(asked + request), None),
            Some(When::Called(call, silence)) => (None, Some((call, silence))),
            Some(When::Printed(_)) | None => (None, None),
        };
        *self.model.silent_at.lock().unwrap() = silent_request;
        *self.shop.silent_at.lock().unwrap() = silent_call;
        let (model, shop) = (&self.model, &self.shop);
        let mut child = self.command(number).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let events = if let Some(When::Printed(events)) = when { events } else { usize::MAX };
        let reached = async {
            match (silent_request, silent_call) {
                (Some(request), _) => model.until_requests(request).await,
                (_, Some(_)) => shop.until_silent().await,
                (None, None) => std::future::pending().await,
            }
        };
        let mut printed = Vec::new();
        let killed = tokio::select! {
            killed = read(&mut stdout, events, &mut printed) => killed,
            () = reached => Killed::Yes,
        };
        if killed == Killed::Yes {
            child.kill().await.unwrap();
            // Reads the rest of the output. The last line may be cut.
            read(&mut stdout, usize::MAX, &mut printed).await;
        } else {
            assert!(child.wait().await.unwrap().success(), "{}", fs::read_to_string(self.path("termination")).unwrap());
        }
        let whole = printed.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.printed.push_str(std::str::from_utf8(&printed[..whole]).unwrap());
        killed
    }

    fn command(&self, number: u32) -> Command {
        let (revision, part) = self.sealed(number);
        let write = |name: &str, sealed: &Sealed| fs::write(self.path(name), &sealed.text).unwrap();
        write("revision.json", &revision);
        write("job.json", &part);
        fs::write(self.path("termination"), "").unwrap();
        let mut command = Command::new(worker(number));
        command
            .current_dir(self.dir.path())
            .args(["run", "--revision", "revision.json", "--revision-digest", revision.digest.as_str()])
            .args(["--job", "job.json", "--job-digest", part.digest.as_str(), "--memory"])
            .arg(self.path("memory"))
            .args(["--token", "token", "--pod-uid", &format!("uid-{number}"), "--termination-log", "termination"])
            .args(["--log-format", "json", "--endpoint-range", "127.0.0.0/8"])
            .stderr(Stdio::null());
        command
    }

    /// Returns both parts of the run document as the operator writes them.
    fn sealed(&self, number: u32) -> (Sealed, Sealed) {
        let mcp = Some(McpEndpoint { url: self.shop.url.clone() });
        let spec = twelve_steps::skill();
        // Without a level, so that workers of the version before can run it (`make test-versions`).
        let revision = Revision { min_worker_level: None, ..Revision::new("cs-tier-1", spec, mcp) };
        let revision = seal(&revision).unwrap();
        let job = ReportServer::job(self.number);
        let part = JobPart {
            version: VERSION,
            job: job.clone(),
            attempt: number,
            after_disruption: false,
            run_key: "k-1".into(),
            named_run_key: false,
            revision: revision.digest.clone(),
            goal: "Refund order A-17".into(),
            validates: false,
            limits: EffectiveLimits::DEFAULT,
            models: vec![ModelEndpoint {
                name: "default".into(),
                provider: ModelProvider::Openai,
                model: "gpt-5".into(),
                base_url: self.model.url.clone(),
                timeout_seconds: 60,
                context_window: 128_000,
                max_output_tokens: None,
                api_key: None,
                ca: None,
                proxy: None,
                fallback: Vec::new(),
            }],
            external_mcp: None,
            resources: Vec::new(),
            approvals: Vec::new(),
            void_approvals: None,
            asked: Vec::new(),
            pins: None,
            tenant_tools: None,
            replies: self.replies.clone(),
            continues: None,
            memory_scope: None,
            depth: 1,
            children: Vec::new(),
            child_wait_seconds: None,
            log: self.operator.log_position(&job),
            report: Some(self.operator.endpoint.clone()),
        };
        (revision, seal(&part).unwrap())
    }
}

/// Returns the worker of an attempt. `make test-versions` sets the variables, so that the attempts are of different versions.
fn worker(attempt: u32) -> OsString {
    let variable = if attempt == 1 { "BLOOMERY_FIRST_WORKER" } else { "BLOOMERY_LATER_WORKER" };
    std::env::var_os(variable).unwrap_or_else(|| env!("CARGO_BIN_EXE_bloomery-worker").into())
}

/// Reads until there are this many lines, or the output ends.
async fn read(from: &mut ChildStdout, lines: usize, into: &mut Vec<u8>) -> Killed {
    while into.split(|byte| *byte == b'\n').count() <= lines {
        if from.read_buf(into).await.unwrap() == 0 {
            return Killed::No;
        }
    }
    Killed::Yes
}
