//! Builds the account that the workers of a Skill run as.

use super::super::validate::ValidSkill;
use super::metadata::metadata;
use bloomery_crds::names;
use k8s_openapi::api::core::v1::ServiceAccount;

/// Builds an account without permissions, whose API token is not mounted.
pub fn build_worker_account(skill: &ValidSkill) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(skill, names::worker_service_account(&skill.name), "worker"),
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
        let skill = validate(&fixtures::without_server()).unwrap();
        insta::assert_snapshot!("worker_account", yaml(&build_worker_account(&skill)));
    }
}
