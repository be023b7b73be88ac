//! Skills of a story.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::v1alpha1::{McpContainer, McpServer, McpService, Policy, Skill, SkillSpec, SkillStatus, ToolPolicy};
use bloomery_testkit::skills::{add_tier_one_rules, refunds};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};

use super::cluster::image;
use super::objects::PORT;
use super::tenant::Tenant;
use super::wait::{gone, says, until};

/// A Skill that is not made yet; awaiting it makes it, or changes the one of this name.
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
    /// A Skill that refunds orders: the shop's MCP server as its container, `default` as its Model.
    pub fn skill(&self, name: &str) -> SkillDraft<'_> {
        self.skill_of(name, refunds()).with_orders()
    }

    /// A Skill of this spec.
    pub fn skill_of(&self, name: &str, spec: SkillSpec) -> SkillDraft<'_> {
        SkillDraft { tenant: self, skill: Skill::new(name, spec) }
    }

    fn orders(&self) -> McpContainer {
        let variable =
            |name: &str, value: String| EnvVar { name: name.to_owned(), value: Some(value), value_from: None };
        McpContainer {
            image: image("e2e-orders"),
            command: Vec::new(),
            args: Vec::new(),
            port: PORT,
            path: "/mcp".to_owned(),
            env: vec![
                variable("LEDGER_URL", format!("http://ledger.{}.svc:{PORT}", self.namespace)),
                variable("TENANT", self.namespace.clone()),
            ],
            resources: None,
        }
    }
}

impl SkillDraft<'_> {
    /// Is all that the seed's `cs-tier-1` says (002, section 3.1): intents, guardrails, workflow, approvals, gate.
    #[must_use]
    pub fn tier_one(self) -> Self {
        self.with(add_tier_one_rules)
    }

    /// Has the shop's MCP server as its container.
    #[must_use]
    pub fn with_orders(self) -> Self {
        let container = self.tenant.orders();
        self.with(|spec| spec.mcp_server = Some(McpServer { container: Some(container), service: None }))
    }

    /// Changes the spec in a way that has no word of its own.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut SkillSpec)) -> Self {
        change(&mut self.skill.spec);
        self
    }

    /// Hides and denies a tool.
    #[must_use]
    pub fn blocking(self, tool: &str) -> Self {
        let tools = ToolPolicy { allowed: None, blocked: vec![tool.to_owned()] };
        self.with(|spec| spec.policy = Some(Policy { tools: Some(tools), ..Policy::default() }))
    }

    /// Takes its tools from a Service of the tenant.
    #[must_use]
    pub fn served_by(self, service: &str) -> Self {
        let service = McpService { name: service.to_owned(), port: PORT, path: "/mcp".to_owned() };
        self.with(|spec| spec.mcp_server = Some(McpServer { container: None, service: Some(service) }))
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
    /// Waits until its status is as wanted.
    pub async fn until(&self, what: &str, wanted: impl Fn(&SkillStatus) -> bool) -> SkillStatus {
        let wanted = |skill: &Skill| skill.status.as_ref().is_some_and(&wanted);
        until(&self.tenant.api::<Skill>(), &self.name, what, wanted).await.status.unwrap_or_default()
    }

    /// Waits until it can be used.
    pub async fn ready(&self) -> SkillStatus {
        self.until("the Skill to be Ready", |status| conditions::is_true(&status.conditions, ConditionType::Ready))
            .await
    }

    /// Waits until a condition has this reason, in a sentence that names all of `parts`.
    pub async fn waits_for(&self, kind: ConditionType, reason: &str, parts: &[&str]) {
        let what = format!("{kind} with the reason {reason} and a message that names {parts:?}");
        self.until(&what, |status| says(&status.conditions, kind, reason, parts).is_some()).await;
    }

    /// Deletes it and does not wait for it to go.
    pub async fn delete(&self) {
        self.tenant.remove::<Skill>(&self.name).await;
    }

    /// Waits until it is gone.
    pub async fn gone(&self) {
        gone(&self.tenant.api::<Skill>(), &self.name, Some(&self.uid)).await;
    }
}
