//! The rights of users.

use std::collections::BTreeSet;

use super::target::Target;

/// The user of a request without impersonation. This user has all rights.
pub(super) const ADMINISTRATOR: &str = "admin";

/// The access rules. A right is `<verb> <resource>`, with a name (`approve approvers/supervisor`) or a scope
/// (`list pods everywhere`) where it is limited to one.
#[derive(Debug, Default)]
pub struct Access {
    /// If true, users have only the rights in `granted`.
    pub(super) needs_grants: bool,
    /// Pairs of a user and a right.
    pub(super) granted: BTreeSet<(String, String)>,
    /// The rights that only the administrator has.
    pub(super) denied: BTreeSet<String>,
}

/// A right that a user needs for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    pub user: &'a str,
    pub verb: &'a str,
    pub resource: &'a str,
    /// Empty for all names.
    pub name: &'a str,
    /// True for a request to all namespaces.
    pub is_everywhere: bool,
}

impl Access {
    /// Returns whether a user has a right in the namespace of the request, for one name or, if `name` is empty, for all.
    pub fn may(&self, user: &str, verb: &str, resource: &str, name: &str) -> bool {
        self.allows(Wish { user, verb, resource, name, is_everywhere: false })
    }

    pub(super) fn allows(&self, wish: Wish<'_>) -> bool {
        let Wish { user, verb, resource, name, is_everywhere } = wish;
        let right = format!("{verb} {resource}");
        let is_granted = || {
            [right.clone(), format!("{right}/{name}")]
                .into_iter()
                .any(|right| self.granted.contains(&(user.to_owned(), right)))
        };
        let is_denied =
            || self.denied.contains(&right) || (is_everywhere && self.denied.contains(&format!("{right} everywhere")));
        user == ADMINISTRATOR || ((!self.needs_grants || is_granted()) && !is_denied())
    }

    /// Returns the message of an API server that denies a request, or `None` if the user may make it.
    pub(super) fn denial(&self, user: &str, verb: &str, target: &Target) -> Option<String> {
        let resource = target.resource();
        let is_everywhere = target.namespace.is_none();
        let wish =
            Wish { user, verb, resource: &resource, name: target.name.as_deref().unwrap_or_default(), is_everywhere };
        let place = match &target.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let group = target.group();
        (!self.allows(wish)).then(|| {
            format!(
                "{} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}",
                target.named()
            )
        })
    }
}
