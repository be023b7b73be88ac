//! The impersonation of a user by this program.

use super::right::{Right, missing_rights};
use crate::error::{Error, ErrorKind};
use kube::Client;

/// A user whom this program impersonates. Clones share the connections.
#[derive(Clone)]
pub struct Impersonation {
    /// The client with the credentials of this program.
    pub own: Client,
    /// The name of the user.
    pub user: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

impl Impersonation {
    /// Returns the error of a request that was refused because this program may not impersonate the user. Returns `None` if it has the
    /// rights, or if they cannot be checked. The API server itself names other rights since Kubernetes 1.36: those of its constrained
    /// impersonation, which it checks first.
    pub(super) async fn refusal_error(&self, doing: &str) -> Option<Error> {
        let Self { own, user, groups } = self;
        let right =
            |resource, name: &String| Right { group: "", verb: "impersonate", resource, name: Some(name.clone()) };
        let of_groups = groups.iter().map(|group| right("groups", group));
        let rights = std::iter::once(right("users", user)).chain(of_groups).collect();
        let missing = missing_rights(own, None, rights).await.ok().filter(|missing| !missing.is_empty())?;
        let missing = Right::descriptions(&missing);
        let message = format!(
            "{doing}: this server may not act as {user}: its account lacks {missing}. The administrator of the cluster grants it, by \
             gateway.proxy.impersonate of the chart"
        );
        Some(Error::new(ErrorKind::Forbidden, message))
    }
}
