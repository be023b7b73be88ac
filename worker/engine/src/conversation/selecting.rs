//! Which of many tools the model is shown.

use super::{Conversation, Question};
use crate::selection;

/// How far the selection is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selecting {
    pub(super) question: Question,
    done: bool,
}

impl Selecting {
    /// What the model is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Whether the tools that the model is shown are known, where there are too many.
    pub fn is_done(&self) -> bool {
        self.done
    }
}

impl Conversation {
    /// Shows the selected tools and those that stay. A name that is no tool's shows nothing: what is remembered lies in
    /// a file that others may write.
    pub(super) fn tools_selected(&mut self, selected: &[String]) {
        self.selecting.done = true;
        let Some(choice) = selection::choice(self) else { return };
        let open = choice.open.iter().filter(|tool| selected.contains(&tool.alias)).take(choice.room);
        let shown: Vec<&str> = open.chain(&choice.fixed).map(|tool| tool.alias.as_str()).collect();
        let (shown, hidden): (Vec<_>, Vec<_>) =
            self.visible.iter().cloned().partition(|tool| shown.contains(&tool.alias.as_str()));
        self.budget.put_aside(hidden.iter().map(super::tool_bytes).sum());
        self.visible = shown;
    }
}
