//! The tools of a Job. When a new Job lists them, its Skill is checked against them, as `bloomery lint --tools` does.

use super::skill::LoadedSkill;
use super::view::RunView;
use bloomery_engine::event::ToolProgress;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_worker::driver::{FinishedCall, ListError, SkillTools, Tools};
use std::time::Duration;

/// The tools of a Job. Shows how many findings the lint has about the Skill, once the tools are known.
#[derive(Debug)]
pub struct CheckedTools<'a> {
    /// The tools of its MCP server, and its scripts.
    pub tools: SkillTools,
    /// The Skill of a new Job.
    pub skill: Option<&'a LoadedSkill>,
    /// The view for the line about the findings.
    pub view: &'a dyn RunView,
}

impl Tools for CheckedTools<'_> {
    async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let listed = self.tools.list(within).await?;
        if let Some(remark) = self.skill.and_then(|skill| skill.remark(&listed)) {
            self.view.print(&remark);
        }
        Ok(listed)
    }

    async fn list_uncached(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        self.tools.list_uncached(within).await
    }

    async fn call(&self, call: &ToolCall<'_>, within: Duration, listener: &dyn Fn(ToolProgress)) -> FinishedCall {
        self.tools.call(call, within, listener).await
    }
}
