//! The records that tests ask for: how often which request came, and which requests wait.

use std::collections::BTreeMap;

use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};

use super::place::Place;

/// Answer of `GET /control/requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// All completion requests with the right key, the refused ones too.
    pub total: u64,
    /// By their `user` field; a worker sends the Job's UID.
    pub users: BTreeMap<String, UserRequests>,
}

/// The requests of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequests {
    /// All requests of the main loop.
    pub requests: u64,
    /// How many of them got the scripted answer.
    pub answered: u64,
    /// How many different turns were asked for.
    pub positions: usize,
    /// How often each turn was asked for.
    pub by_position: BTreeMap<usize, u64>,
    /// How often each of the other stages asked.
    #[serde(default)]
    pub by_stage: BTreeMap<Stage, u64>,
}

/// One request that waits at a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The hold's name in the script.
    pub name: String,
    /// Whose request it is.
    pub user: String,
    /// The stage that asks.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that it asks for.
    pub turn: usize,
}

impl Requests {
    /// Returns the requests of a user.
    pub(super) fn by_user(&mut self, user: &str) -> &mut UserRequests {
        self.users.entry(user.to_owned()).or_default()
    }
}

impl UserRequests {
    /// Counts a request.
    pub(super) fn count(&mut self, Place { stage, turn }: Place) {
        if stage != Stage::Plan {
            *self.by_stage.entry(stage).or_default() += 1;
            return;
        }
        self.requests += 1;
        *self.by_position.entry(turn).or_default() += 1;
        self.positions = self.by_position.len();
    }
}
