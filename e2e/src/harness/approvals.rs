//! Approvals, and the people who decide on them.

use bloomery_crds::v1alpha1::Approval;
use bloomery_testkit::json::typed;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::job::JobHandle;
use super::objects::{Refusal, write};
use super::tenant::Tenant;
use super::wait::{eventually, until};

/// A user of the cluster.
pub struct Person {
    api: Api<Approval>,
    /// The user name.
    pub name: String,
}

impl Tenant {
    /// Returns a user with the rights that were granted to the name.
    pub async fn person(&self, name: &str) -> Person {
        self.person_in_groups(name, &[]).await
    }

    /// Returns a user in these groups.
    pub async fn person_in_groups(&self, name: &str, groups: &[&str]) -> Person {
        let client = self.cluster.impersonating(name, groups).await;
        Person { api: Api::namespaced(client, &self.namespace), name: name.to_owned() }
    }

    /// Grants a user the rights to change Approvals, and to approve for these approvers.
    pub async fn grant_approval(&self, person: &str, approvers: &[&str]) {
        let mut rules = vec![json!({
            "apiGroups": ["bloomery.dev"], "resources": ["approvals", "approvals/status"],
            "verbs": ["get", "list", "watch", "create", "update", "patch"],
        })];
        if !approvers.is_empty() {
            rules.push(json!({
                "apiGroups": ["bloomery.dev"], "resources": ["approvers"], "resourceNames": approvers,
                "verbs": ["approve"],
            }));
        }
        self.grant(person, &rules).await;
    }

    /// Grants a user these rules, and waits until each rule is in force.
    pub async fn grant(&self, person: &str, rules: &[Value]) {
        let name = person.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.create::<Role>(typed(json!({"metadata": {"name": name}, "rules": rules}))).await;
        self.create::<RoleBinding>(typed(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
        })))
        .await;
        // Roles take effect when the API server's cache has them.
        for rule in rules {
            let first = |field: &str| rule.pointer(&format!("/{field}/0")).and_then(Value::as_str).unwrap_or_default();
            let asked = json!({
                "namespace": self.namespace, "group": first("apiGroups"), "resource": first("resources"),
                "verb": first("verbs"), "name": first("resourceNames"),
            });
            self.until_allowed(person, &asked).await;
        }
    }

    /// Waits until the roles of a user allow a request, given its `resourceAttributes`.
    pub async fn until_allowed(&self, person: &str, asked: &Value) {
        eventually(&format!("{person} to be allowed {asked}"), async || {
            if self.is_allowed(person, asked).await { Ok(()) } else { Err("no") }
        })
        .await;
    }

    /// Binds a `ClusterRole` to a user in the namespace, and waits until the user may `get` this resource of Bloomery.
    pub async fn bind(&self, person: &str, cluster_role: &str, resource: &str) {
        let name = format!("{cluster_role}-{person}").replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.create::<RoleBinding>(typed(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
        })))
        .await;
        let asked = json!({"namespace": self.namespace, "group": "bloomery.dev", "resource": resource, "verb": "get"});
        self.until_allowed(person, &asked).await;
    }

    /// Returns whether the roles of a user allow a request, given its `resourceAttributes`.
    pub async fn is_allowed(&self, person: &str, asked: &Value) -> bool {
        let review: SubjectAccessReview =
            typed(json!({"metadata": {}, "spec": {"user": person, "resourceAttributes": asked}}));
        let api: Api<SubjectAccessReview> = Api::all(self.cluster.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.unwrap_or_else(|error| panic!("the API server does not review {asked}: {error}"));
        answer.status.is_some_and(|status| status.allowed)
    }

    /// Returns the Approvals of a Job.
    pub async fn approvals_of(&self, job: &JobHandle<'_>) -> Vec<Approval> {
        let all = self.api::<Approval>().list(&ListParams::default()).await;
        let all = all.unwrap_or_else(|error| panic!("Approvals cannot be listed: {error}")).items;
        all.into_iter().filter(|approval| approval.spec.job_uid == job.uid).collect()
    }

    /// Waits for the Approval of a Job for an approver.
    pub async fn approval_for(&self, job: &JobHandle<'_>, approver: &str) -> Approval {
        eventually(&format!("an Approval of {} for {approver}", job.name), async || {
            let found = self.approvals_of(job).await;
            let seen: Vec<String> = found.iter().map(|approval| approval.spec.approver.clone()).collect();
            found.into_iter().find(|approval| approval.spec.approver == approver).ok_or(seen)
        })
        .await
    }

    /// Waits until the decision on an Approval counts, and returns the Approval.
    pub async fn until_counted(&self, approval: &Approval) -> Approval {
        let counts = |approval: &Approval| approval.status.as_ref().is_some_and(|status| status.counted.is_some());
        until(&self.api::<Approval>(), &approval.name_any(), "a decision that counts", counts).await
    }
}

impl Person {
    /// Decides on an Approval in their own name.
    ///
    /// # Errors
    /// The API server refuses the decision.
    pub async fn decide(&self, approval: &Approval, verdict: &str, reason: &str) -> Result<(), Refusal> {
        let decision = json!({"verdict": verdict, "by": self.name, "reason": reason});
        self.change(approval, &json!({"spec": {"decision": decision}})).await
    }

    /// Changes an Approval by a merge patch.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn change(&self, approval: &Approval, patch: &Value) -> Result<(), Refusal> {
        outcome(self.api.patch(&approval.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Changes the status of an Approval by a merge patch.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn change_status(&self, approval: &Approval, status: &Value) -> Result<(), Refusal> {
        let patch = json!({"status": status});
        outcome(self.api.patch_status(&approval.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await)
    }

    /// Creates an Approval.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn create(&self, approval: &Approval) -> Result<(), Refusal> {
        outcome(self.api.create(&write(), approval).await)
    }
}

fn outcome<T>(answer: kube::Result<T>) -> Result<(), Refusal> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(Refusal(status.message)),
        Err(other) => panic!("the API server did not answer: {other}"),
    }
}
