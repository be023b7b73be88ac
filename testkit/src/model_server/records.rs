//! The records for tests: the counts of requests, and the requests that wait at a hold.

use std::collections::BTreeMap;

use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};

use super::place::Place;

/// Answer of `GET /control/requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// The number of completion requests with the right key, including refused ones.
    pub total: u64,
    /// The counts by the `user` field of the requests. A worker sends the Job's UID.
    pub users: BTreeMap<String, UserRequests>,
}

/// The numbers of requests of one user, which is one Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequests {
    /// The number of requests of the main loop.
    pub requests: u64,
    /// The number of requests of the main loop that received the scripted answer.
    pub answered: u64,
    /// The number of different turns of the main loop that were requested.
    pub positions: usize,
    /// The number of requests of the main loop for each turn.
    pub by_position: BTreeMap<usize, u64>,
    /// The number of requests of each other stage.
    #[serde(default)]
    pub by_stage: BTreeMap<Stage, u64>,
}

/// One request that waits at a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The hold's name in the script.
    pub name: String,
    /// The `user` field of the request.
    pub user: String,
    /// The stage of the engine that sent the request.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that the request asks for.
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
