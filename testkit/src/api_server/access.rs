//! The rights of users.

use std::collections::BTreeSet;

use super::target::Target;

/// The user of a request without impersonation. This user has all rights.
pub(super) const ADMINISTRATOR: &str = "admin";

/// The access rules. A right is `<verb> <resource>`. It can be limited to one name (`approve approvers/supervisor`) or to
/// requests across all namespaces (`list pods everywhere`).
#[derive(Debug, Default)]
pub struct Access {
    /// If true, users have only the rights in `granted`.
    pub(super) needs_grants: bool,
    /// Pairs of a user and a right.
    pub(super) granted: BTreeSet<(String, String)>,
    /// The rights that only the administrator has.
    pub(super) denied: BTreeSet<String>,
    /// The users whom the administrator may not impersonate.
    pub(super) not_impersonated: BTreeSet<String>,
}

/// A request of a user, as the access rules see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessRequest<'a> {
    pub user: &'a str,
    pub verb: &'a str,
    pub resource: &'a str,
    /// Empty for all names.
    pub name: &'a str,
    /// True for a request across all namespaces.
    pub is_everywhere: bool,
}

impl Access {
    /// Returns whether a user has a right in the namespace of the request, for one name or, if `name` is empty, for all.
    pub fn may(&self, user: &str, verb: &str, resource: &str, name: &str) -> bool {
        self.allows(AccessRequest { user, verb, resource, name, is_everywhere: false })
    }

    pub(super) fn allows(&self, request: AccessRequest<'_>) -> bool {
        let AccessRequest { user, verb, resource, name, is_everywhere } = request;
        let right = format!("{verb} {resource}");
        let is_granted = || {
            [right.clone(), format!("{right}/{name}")]
                .into_iter()
                .any(|right| self.granted.contains(&(user.to_owned(), right)))
        };
        let is_denied =
            || self.denied.contains(&right) || (is_everywhere && self.denied.contains(&format!("{right} everywhere")));
        if user == ADMINISTRATOR {
            return (verb, resource) != ("impersonate", "users") || !self.not_impersonated.contains(name);
        }
        (!self.needs_grants || is_granted()) && !is_denied()
    }

    /// Returns the message with which an API server refuses a request of an impersonated user, or `None` if the administrator may
    /// impersonate this user.
    pub(super) fn impersonation_denial(&self, user: &str) -> Option<String> {
        (!self.may(ADMINISTRATOR, "impersonate", "users", user)).then(|| {
            format!(
                "users \"{user}\" is forbidden: User \"{ADMINISTRATOR}\" cannot impersonate resource \"users\" in API group \"\" at the \
                 cluster scope"
            )
        })
    }

    /// Returns the message with which an API server denies a request, or `None` if the user may make the request.
    pub(super) fn denial(&self, user: &str, verb: &str, target: &Target) -> Option<String> {
        let resource = target.resource();
        let is_everywhere = target.namespace.is_none();
        let request = AccessRequest {
            user,
            verb,
            resource: &resource,
            name: target.name.as_deref().unwrap_or_default(),
            is_everywhere,
        };
        let place = match &target.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let group = target.group();
        (!self.allows(request)).then(|| {
            format!(
                "{} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}",
                target.display_name()
            )
        })
    }
}
