//! Finds the answer to a request in the script, and checks the expectations of the script.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bloomery_crds::v1alpha1::Stage;

use super::place::Place;
use super::request::{Kind, Request};
use super::script::{Conversation, Expect, Script, Turn};
use super::stage;
use super::violation::{BrokenRule, Rule};

/// An expectation of the script that a request fails.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unexpected(String);

/// The answer to a request, and its conversation.
pub(super) struct Found<'a> {
    /// The conversation's name, or an empty string for a default answer.
    pub(super) conversation: &'a str,
    /// The fields that the server refuses as unknown in this conversation.
    pub(super) unknown_fields: &'a [String],
    /// The answer.
    pub(super) turn: Cow<'a, Turn>,
}

/// Finds the answer to a request. `known` is the conversation of the user's earlier requests, if there is one: the prompts of
/// later stages may lack the goal.
///
/// # Errors
/// The script has no answer for the main loop: a violation of [`Rule::Scripted`].
pub(super) fn find<'a>(
    script: &'a Script,
    request: &Request,
    place: Place,
    known: Option<&str>,
) -> Result<Found<'a>, BrokenRule> {
    if place.stage != Stage::Plan {
        let named = |conversation: &&Conversation| known == Some(conversation.name.as_str());
        let conversation = script
            .conversations
            .iter()
            .find(named)
            .or_else(|| find_conversation(script, request, /*is_main_loop*/ false));
        let scripted = conversation.and_then(|conversation| conversation.answers(place.stage).get(place.turn));
        let turn = scripted.map(Cow::Borrowed).or_else(|| stage::default_answer(place.stage, request).map(Cow::Owned));
        let turn = turn.ok_or_else(|| (Rule::Scripted, "the stage has no answer".to_owned()))?;
        return Ok(match conversation {
            Some(conversation) => conversation.found(turn),
            None => Found { conversation: "", unknown_fields: &[], turn },
        });
    }
    let conversation = find_conversation(script, request, /*is_main_loop*/ true).ok_or_else(|| {
        let goal = request.first_text();
        let message =
            format!("no conversation of the script matches the model `{}` and the goal `{goal}`", request.model);
        (Rule::Scripted, message)
    })?;
    let turn = conversation.turns.get(place.turn).ok_or_else(|| {
        let turns = conversation.turns.len();
        let message =
            format!("conversation `{}` has {turns} turns; turn {} was requested", conversation.name, place.turn);
        (Rule::Scripted, message)
    })?;
    Ok(conversation.found(Cow::Borrowed(turn)))
}

impl Conversation {
    fn found<'a>(&'a self, turn: Cow<'a, Turn>) -> Found<'a> {
        Found { conversation: &self.name, unknown_fields: &self.unknown_fields, turn }
    }
}

/// Returns the first conversation that matches. Stages other than the main loop have their own models and system
/// prompts, so only the goal is compared.
fn find_conversation<'a>(script: &'a Script, request: &Request, is_main_loop: bool) -> Option<&'a Conversation> {
    let (goal, system) = (request.first_text(), request.system_text().unwrap_or_default());
    script.conversations.iter().find(|conversation| {
        let wanted = &conversation.matches;
        let goal_matches = wanted.goal.as_ref().is_none_or(|part| goal.contains(part));
        let others_match = wanted.system.as_ref().is_none_or(|part| system.contains(part))
            && wanted.model.as_ref().is_none_or(|name| *name == request.model);
        goal_matches && (others_match || !is_main_loop)
    })
}

/// Checks the expectations of a turn.
///
/// # Errors
/// The request fails one.
pub(super) fn check_expectations(expect: &Expect, request: &Request) -> Result<(), Unexpected> {
    let Expect {
        last_tool_result_contains,
        last_user_message_contains,
        system_contains,
        no_message_contains,
        tools_offered,
        tools_not_offered,
        structured,
        streaming,
    } = expect;
    let last = |kind: Kind| request.items_of(kind).next_back().map(|item| item.text.as_str());
    let texts = [
        ("the last tool result", last_tool_result_contains, last(Kind::Result)),
        ("the last user message", last_user_message_contains, last(Kind::User)),
        ("the system message", system_contains, request.system_text()),
    ];
    for (what, part, text) in texts {
        let Some(part) = part else { continue };
        match text {
            Some(text) if text.contains(part) => {}
            Some(text) => return Err(Unexpected(format!("{what} should contain `{part}` and is `{text}`"))),
            None => return Err(Unexpected(format!("{what} should contain `{part}` and there is none"))),
        }
    }
    let forms =
        [("JSON that follows a schema", structured, request.structured), ("a stream", streaming, request.stream)];
    for (form, wanted, requested) in forms {
        if wanted.is_some_and(|wanted| wanted != requested) {
            let should = if requested { "should not" } else { "should" };
            return Err(Unexpected(format!("the request {should} ask for {form}")));
        }
    }
    let is_contained = |part: &&String| request.items.iter().any(|item| item.raw.to_string().contains(part.as_str()));
    if let Some(part) = no_message_contains.iter().find(is_contained) {
        return Err(Unexpected(format!("no message should contain `{part}`")));
    }
    let offered: BTreeSet<&str> = request.tool_names().collect();
    if let Some(name) = tools_offered.iter().find(|name| !offered.contains(name.as_str())) {
        return Err(Unexpected(format!("`{name}` should be offered; offered are {offered:?}")));
    }
    match tools_not_offered.iter().find(|name| offered.contains(name.as_str())) {
        Some(name) => Err(Unexpected(format!("`{name}` should not be offered; offered are {offered:?}"))),
        None => Ok(()),
    }
}
