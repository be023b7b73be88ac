//! What the ledger is told, and what it keeps.

use serde::{Deserialize, Serialize};

/// One effect in the world, as the server that causes it reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Effect {
    /// The call's key, the same on every retry of one call; absent for clients that send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_key: Option<String>,
    /// The tool that had the effect.
    pub tool: String,
    /// The order that it concerns.
    pub order: String,
    /// The amount, exactly as it was sent.
    pub amount: serde_json::Number,
    /// Whose effect it is, where one ledger serves several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl Effect {
    /// Says what is wrong with an effect that cannot be counted.
    ///
    /// # Errors
    /// A name is empty: the effect would be counted under nothing.
    pub fn check(&self) -> Result<(), String> {
        let names = [
            ("callKey", self.call_key.as_deref()),
            ("tool", Some(self.tool.as_str())),
            ("order", Some(self.order.as_str())),
            ("tenant", self.tenant.as_deref()),
        ];
        match names.into_iter().find(|(_, value)| *value == Some("")) {
            Some((field, _)) => Err(format!("{field}: must not be empty; leave it out if there is none")),
            None => Ok(()),
        }
    }
}

/// The ledger's answer to an effect: it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The effect's number in the ledger, from 1.
    pub seq: u64,
    /// How often this call key was seen, this time included; 1 where no key was sent.
    pub seen: u64,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Entry {
    /// An effect happened.
    Effect(Effect),
    /// An order's hold was released, for good.
    Released(String),
}
