//! Effects as clients report them, and the entries of the journal.

use serde::{Deserialize, Serialize};

/// An effect of a tool call, as the server that causes it reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Effect {
    /// The call's key, the same on every retry of one call; absent for clients that send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_key: Option<String>,
    /// The tool that had the effect.
    pub tool: String,
    /// The order that the effect concerns.
    pub order: String,
    /// The amount, with all digits that the client sent.
    pub amount: serde_json::Number,
    /// The tenant, if the ledger serves several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Error of an effect with an empty field. Contains the name of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: must not be empty; leave it out if there is none")]
pub struct EmptyName(&'static str);

impl Effect {
    /// Checks that the effect can be counted.
    ///
    /// # Errors
    /// A name is empty.
    pub fn check(&self) -> Result<(), EmptyName> {
        let names = [
            ("callKey", self.call_key.as_deref()),
            ("tool", Some(self.tool.as_str())),
            ("order", Some(self.order.as_str())),
            ("tenant", self.tenant.as_deref()),
        ];
        match names.into_iter().find(|(_, value)| *value == Some("")) {
            Some((field, _)) => Err(EmptyName(field)),
            None => Ok(()),
        }
    }
}

/// The ledger's acknowledgement of a durable effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The effect's number in the ledger, from 1.
    pub seq: u64,
    /// The number of effects with this call key, including this one. It is 1 for an effect without a key.
    pub seen: u64,
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Entry {
    /// An effect happened.
    Effect(Effect),
    /// The hold of an order was released. The order cannot be held again.
    Released(String),
}
