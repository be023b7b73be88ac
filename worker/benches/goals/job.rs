//! A Job whose attempts are real worker processes.

use crate::servers::{Servers, TOOLS};
use crate::{script, skill};
use bloomery_crds::run::{
    BoundResource, JobIdentity, JobPart, McpEndpoint, ModelEndpoint, ResourceSource, Revision, VERSION, seal,
};
use bloomery_crds::v1alpha1::{ModelProvider, ResourceType, SkillSpec};
use bloomery_journal::segment;
use bloomery_testkit::report_server::ReportServer;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// The file that [`Job::reading`] reads.
pub(crate) const FILE: &str = "order.md";

/// A Job, its memory and its servers.
pub(crate) struct Job {
    dir: PathBuf,
    operator: ReportServer,
    pub(crate) servers: Servers,
    window: u64,
    spec: SkillSpec,
    mcp: Option<McpEndpoint>,
    resources: Vec<BoundResource>,
}

impl Job {
    /// Creates a Job whose memory is below `root`. `window` is the context window of its model, in tokens.
    pub(crate) async fn new(root: &Path, servers: Servers, window: u64) -> Self {
        let dir = crate::new_dir(root);
        fs::write(dir.join("token"), "token").unwrap();
        fs::create_dir(dir.join("memory")).unwrap();
        let mcp = Some(McpEndpoint { url: format!("{}{TOOLS}", servers.base) });
        Self {
            dir,
            operator: ReportServer::start([]).await,
            servers,
            window,
            spec: skill::skill(),
            mcp,
            resources: Vec::new(),
        }
    }

    /// Creates a Job whose Skill reads answers of up to this many bytes.
    pub(crate) async fn with_max_result_bytes(root: &Path, servers: Servers, bytes: u32) -> Self {
        let mut job = Self::new(root, servers, skill::WINDOW).await;
        job.spec.engine.get_or_insert_default().max_result_bytes = Some(bytes);
        job
    }

    /// Creates a Job whose Skill reads one file, and has no MCP server.
    pub(crate) async fn reading(root: &Path, servers: Servers, bytes: usize) -> Self {
        let job = Self::new(root, servers, skill::WINDOW).await;
        let code = job.path("code");
        fs::create_dir(&code).unwrap();
        fs::write(code.join(FILE), script::result(bytes)).unwrap();
        let source = ResourceSource::Mount { path: code.to_str().unwrap().into(), read_only: true };
        let resource = BoundResource { name: "code".into(), kind: ResourceType::Filesystem, source };
        Self { spec: skill::reader(), mcp: None, resources: vec![resource], ..job }
    }

    /// Creates a Job whose Skill has no MCP server. Its first request to the model comes from the main loop.
    pub(crate) async fn without_tools(root: &Path, servers: Servers) -> Self {
        let job = Self::new(root, servers, skill::WINDOW).await;
        Self { spec: skill::plain(), mcp: None, ..job }
    }

    /// Runs an attempt to its end, which must be a success.
    pub(crate) async fn run(&self, number: u32) {
        let status = self.start(number).wait().await.unwrap();
        let message = fs::read_to_string(self.path("termination")).unwrap();
        assert!(status.success() && message.contains("\"Succeeded\""), "{status}: {message}");
    }

    /// Starts an attempt.
    pub(crate) fn start(&self, number: u32) -> Child {
        let (spec, mcp) = (self.spec.clone(), self.mcp.clone());
        let revision = seal(&Revision::new("cs-tier-1", spec, mcp)).unwrap();
        let part = seal(&JobPart {
            version: VERSION,
            job: JobIdentity { namespace: "acme".into(), name: "refund".into(), uid: "uid-j".into() },
            attempt: number,
            after_disruption: false,
            run_key: crate::RUN_KEY.into(),
            named_run_key: false,
            revision: revision.digest.clone(),
            goal: skill::GOAL.into(),
            validates: false,
            limits: skill::LIMITS,
            models: vec![model(&self.servers.base, self.window)],
            external_mcp: None,
            resources: self.resources.clone(),
            approvals: Vec::new(),
            void_approvals: None,
            asked: Vec::new(),
            pins: None,
            tenant_tools: None,
            replies: Vec::new(),
            continues: None,
            memory_scope: None,
            depth: 1,
            children: Vec::new(),
            child_wait_seconds: None,
            log: None,
            report: Some(self.operator.endpoint.clone()),
        })
        .unwrap();
        fs::write(self.path("revision.json"), &revision.text).unwrap();
        fs::write(self.path("job.json"), &part.text).unwrap();
        fs::write(self.path("termination"), "").unwrap();
        Command::new(env!("CARGO_BIN_EXE_bloomery-worker"))
            .current_dir(&self.dir)
            .args(["run", "--revision", "revision.json", "--revision-digest", revision.digest.as_str()])
            .args(["--job", "job.json", "--job-digest", part.digest.as_str(), "--memory"])
            .arg(self.path("memory"))
            .arg("--endpoint-range=127.0.0.0/8")
            .args(["--token", "token", "--pod-uid", &format!("uid-{number}"), "--termination-log", "termination"])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Returns the lines of the log.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        while let Ok(content) = fs::read_to_string(self.log().join(segment::name(lines.len() as u64 + 1))) {
            lines.extend(content.lines().map(str::to_owned));
        }
        lines
    }

    /// Returns the number of segments of the log.
    pub(crate) fn segments(&self) -> usize {
        let names = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| segment::seq_of(&name.to_string_lossy()).is_some()).count()
    }

    fn log(&self) -> PathBuf {
        self.path("memory").join(bloomery_journal::JOBS).join(crate::RUN_KEY)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Returns the model of a Job, as in the run document.
pub(crate) fn model(base: &str, window: u64) -> ModelEndpoint {
    ModelEndpoint {
        name: "default".into(),
        provider: ModelProvider::Openai,
        model: "gpt-5".into(),
        base_url: format!("{base}/v1"),
        timeout_seconds: 60,
        context_window: window,
        max_output_tokens: None,
        api_key: None,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    }
}
