//! Skills of a story.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{
    McpContainer, McpEgress, McpScope, McpServer, McpService, McpTransport, Memory, Policy, ReclaimPolicy, Skill,
    SkillSpec, SkillStatus, ToolPolicy,
};
use bloomery_testkit::skills::{add_tier_one_rules, refunds};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};

use super::cluster::image;
use super::objects::PORT;
use super::tenant::Tenant;
use super::wait::{condition_message, gone, until};

/// A Skill to be written. Awaiting it creates or changes the Skill.
pub struct SkillDraft<'t> {
    tenant: &'t Tenant,
    skill: Skill,
}

/// A Skill in the cluster.
pub struct SkillHandle<'t> {
    tenant: &'t Tenant,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl Tenant {
    /// Returns a Skill that refunds orders, with the shop's MCP server as its container.
    pub fn skill(&self, name: &str) -> SkillDraft<'_> {
        self.skill_of(name, refunds()).with_orders()
    }

    /// Returns a Skill with this spec.
    pub fn skill_of(&self, name: &str, spec: SkillSpec) -> SkillDraft<'_> {
        SkillDraft { tenant: self, skill: Skill::new(name, spec) }
    }

    fn orders(&self) -> McpContainer {
        let variable =
            |name: &str, value: String| EnvVar { name: name.to_owned(), value: Some(value), value_from: None };
        McpContainer {
            image: image("e2e-orders"),
            transport: None,
            command: Vec::new(),
            args: Vec::new(),
            port: PORT,
            path: "/mcp".to_owned(),
            health: None,
            env: vec![
                variable("LEDGER_URL", format!("http://ledger.{}.svc:{PORT}", self.namespace)),
                variable("TENANT", self.namespace.clone()),
            ],
            bindings: Vec::new(),
            resources: None,
            protect: None,
        }
    }
}

/// Returns an MCP server that may connect to the ledger.
fn connecting_to_the_ledger(container: McpContainer) -> McpServer {
    let egress = vec![McpEgress { host: "ledger".to_owned(), port: Some(PORT) }];
    McpServer { container: Some(container), egress, ..McpServer::default() }
}

impl SkillDraft<'_> {
    /// Adds intents, guardrails, a workflow, an approval rule and the finalization gate ([`add_tier_one_rules`]).
    #[must_use]
    pub fn tier_one(self) -> Self {
        self.with(add_tier_one_rules)
    }

    /// Uses the shop's MCP server, in a container of the Skill.
    #[must_use]
    pub fn with_orders(self) -> Self {
        let server = connecting_to_the_ledger(self.tenant.orders());
        self.with(|spec| spec.mcp_server = Some(server))
    }

    /// Uses an MCP server that speaks over its standard input and output. Its image has nothing else.
    #[must_use]
    pub fn with_stdio_server(self) -> Self {
        let container = McpContainer {
            image: image("e2e-stdio"),
            transport: Some(McpTransport::Stdio),
            command: vec!["/bloomery-e2e-stdio".to_owned()],
            env: Vec::new(),
            ..self.tenant.orders()
        };
        let server = connecting_to_the_ledger(container);
        self.with(|spec| spec.mcp_server = Some(server))
    }

    /// Gives each Job an MCP server of its own, as a sidecar of its pod.
    #[must_use]
    pub fn with_server_per_job(self) -> Self {
        self.with(|spec| spec.mcp_server.as_mut().expect("the Skill has a server").scope = Some(McpScope::Job))
    }

    /// Sets an environment variable of its MCP server's container.
    #[must_use]
    pub fn with_server_env(self, name: &str, value: &str) -> Self {
        let variable = EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None };
        self.with(|spec| {
            let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
            container.expect("the Skill runs a container").env.push(variable);
        })
    }

    /// Changes the spec.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut SkillSpec)) -> Self {
        change(&mut self.skill.spec);
        self
    }

    /// Allows only one tool of its MCP server.
    #[must_use]
    pub fn allowing_only(self, tool: &str) -> Self {
        let tools = ToolPolicy { allowed: Some(vec![tool.to_owned()]), blocked: Vec::new() };
        self.with(|spec| spec.policy = Some(Policy { tools: Some(tools), ..Policy::default() }))
    }

    /// Blocks a tool.
    #[must_use]
    pub fn blocking(self, tool: &str) -> Self {
        let tools = ToolPolicy { allowed: None, blocked: vec![tool.to_owned()] };
        self.with(|spec| spec.policy = Some(Policy { tools: Some(tools), ..Policy::default() }))
    }

    /// Uses a Service of the tenant as the MCP server.
    #[must_use]
    pub fn served_by(self, service: &str) -> Self {
        let service = McpService { name: service.to_owned(), port: PORT, path: "/mcp".to_owned() };
        self.with(|spec| spec.mcp_server = Some(McpServer { service: Some(service), ..McpServer::default() }))
    }

    /// Returns the Skill as it would be written.
    pub fn object(&self) -> &Skill {
        &self.skill
    }

    /// Removes its directory of the memory when it is deleted.
    #[must_use]
    pub fn with_reclaimed_memory(self) -> Self {
        let memory = Memory { reclaim_policy: Some(ReclaimPolicy::Delete), ..Memory::default() };
        self.with(|spec| spec.memory = Some(memory))
    }

    /// Runs another image as its MCP server.
    #[must_use]
    pub fn running(self, image: &str) -> Self {
        self.with(|spec| {
            let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
            image.clone_into(&mut container.expect("the Skill runs a container").image);
        })
    }
}

impl<'t> IntoFuture for SkillDraft<'t> {
    type Output = SkillHandle<'t>;
    type IntoFuture = BoxFuture<'t, SkillHandle<'t>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let name = self.skill.name_any();
            let apply = PatchParams::apply("bloomery-e2e").force();
            let written = self.tenant.api::<Skill>().patch(&name, &apply, &Patch::Apply(&self.skill)).await;
            let written = written.unwrap_or_else(|error| panic!("Skill {name} cannot be written: {error}"));
            SkillHandle { tenant: self.tenant, name, uid: written.uid().unwrap_or_default() }
        })
    }
}

impl SkillHandle<'_> {
    /// Waits for a status and returns it. `what` describes it in the failure message.
    pub async fn until(&self, what: &str, wanted: impl Fn(&SkillStatus) -> bool) -> SkillStatus {
        let wanted = |skill: &Skill| skill.status.as_ref().is_some_and(&wanted);
        until(&self.tenant.api::<Skill>(), &self.name, what, wanted).await.status.unwrap_or_default()
    }

    /// Waits until the Skill is ready.
    pub async fn ready(&self) -> SkillStatus {
        self.until("the Skill to be Ready", |status| conditions::is_true(&status.conditions, ConditionType::Ready))
            .await
    }

    /// Waits until a condition has this reason and a message with all of `parts`.
    pub async fn until_reason(&self, kind: ConditionType, reason: &str, parts: &[&str]) {
        let what = format!("{kind} with the reason {reason} and a message that names {parts:?}");
        self.until(&what, |status| condition_message(&status.conditions, kind, reason, parts).is_some()).await;
    }

    /// Waits until the Skill has the finalizer that keeps it until its directory is removed.
    pub async fn until_finalizer(&self) {
        let has_finalizer = |skill: &Skill| skill.finalizers().iter().any(|found| found == names::FINALIZER_MEMORY);
        until(&self.tenant.api::<Skill>(), &self.name, "the finalizer of the memory", has_finalizer).await;
    }

    /// Deletes the Skill and does not wait for its removal.
    pub async fn delete(&self) {
        self.tenant.remove::<Skill>(&self.name).await;
    }

    /// Waits until the Skill is gone.
    pub async fn gone(&self) {
        gone(&self.tenant.api::<Skill>(), &self.name, Some(&self.uid)).await;
    }
}
