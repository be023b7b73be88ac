//! Builds the account that the MCP server of a Skill runs as.

use super::super::validate::ValidSkill;
use super::metadata::metadata;
use bloomery_crds::names;
use k8s_openapi::api::core::v1::ServiceAccount;

/// Builds an account without permissions, separate from that of the workers.
pub fn build_mcp_account(skill: &ValidSkill) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(skill, names::mcp_server(&skill.name), "mcp"),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::yaml;
    use super::*;
    use crate::skill::{fixtures, validate::validate};

    #[test]
    fn the_account_has_no_permissions() {
        let skill = validate(&fixtures::with_container()).unwrap();
        insta::assert_snapshot!("mcp_account", yaml(&build_mcp_account(&skill)));
    }
}
