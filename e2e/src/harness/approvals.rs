//! People who decide on Approvals, and the Approvals of a story.

use bloomery_crds::v1alpha1::Approval;
use bloomery_testkit::json::typed;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::job::JobHandle;
use super::objects::write;
use super::tenant::Tenant;
use super::wait::{eventually, until};

/// Somebody who may decide, or not.
pub struct Person {
    api: Api<Approval>,
    /// The name that the API server knows them by.
    pub name: String,
}

impl Tenant {
    /// Somebody with the rights that `lets_approve` and others have given them.
    pub async fn person(&self, name: &str) -> Person {
        self.person_of(name, &[]).await
    }

    /// The same, of these groups.
    pub async fn person_of(&self, name: &str, groups: &[&str]) -> Person {
        let client = self.cluster.acting_as(name, groups).await;
        Person { api: Api::namespaced(client, &self.namespace), name: name.to_owned() }
    }

    /// Lets somebody change Approvals, and approve for these approvers.
    pub async fn lets_approve(&self, person: &str, approvers: &[&str]) {
        let name = person.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
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
        self.create::<Role>(typed(json!({"metadata": {"name": name}, "rules": rules}))).await;
        self.create::<RoleBinding>(typed(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
        })))
        .await;
        // The API server needs a moment to know.
        self.until_allowed(person, "patch", "approvals", "").await;
        for approver in approvers {
            self.until_allowed(person, "approve", "approvers", approver).await;
        }
    }

    async fn until_allowed(&self, person: &str, verb: &str, resource: &str, name: &str) {
        let asked = json!({
            "group": "bloomery.dev", "namespace": self.namespace, "verb": verb, "resource": resource, "name": name,
        });
        let review: SubjectAccessReview =
            typed(json!({"metadata": {}, "spec": {"user": person, "resourceAttributes": asked}}));
        let api: Api<SubjectAccessReview> = Api::all(self.cluster.client.clone());
        eventually(&format!("{person} to be allowed {asked}"), async || {
            let answer = api.create(&PostParams::default(), &review).await.map_err(|error| error.to_string())?;
            answer.status.filter(|status| status.allowed).map(|_| ()).ok_or_else(|| "no".to_owned())
        })
        .await;
    }

    /// The Approvals of a Job.
    pub async fn approvals_of(&self, job: &JobHandle<'_>) -> Vec<Approval> {
        let all = self.api::<Approval>().list(&ListParams::default()).await;
        let all = all.unwrap_or_else(|error| panic!("Approvals cannot be listed: {error}")).items;
        all.into_iter().filter(|approval| approval.spec.job_uid == job.uid).collect()
    }

    /// Waits until an Approval of a Job for an approver is there.
    pub async fn approval_for(&self, job: &JobHandle<'_>, approver: &str) -> Approval {
        eventually(&format!("an Approval of {} for {approver}", job.name), async || {
            let found = self.approvals_of(job).await;
            let seen: Vec<String> = found.iter().map(|approval| approval.spec.approver.clone()).collect();
            found.into_iter().find(|approval| approval.spec.approver == approver).ok_or(seen)
        })
        .await
    }

    /// Waits until a decision on an Approval counts; gives the Approval.
    pub async fn counted(&self, approval: &Approval) -> Approval {
        let counts = |approval: &Approval| approval.status.as_ref().is_some_and(|status| status.counted.is_some());
        until(&self.api::<Approval>(), &approval.name_any(), "a decision that counts", counts).await
    }
}

impl Person {
    /// Decides in their own name.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn decides(&self, approval: &Approval, verdict: &str, reason: &str) -> Result<(), String> {
        let decision = json!({"verdict": verdict, "by": self.name, "reason": reason});
        self.changes(approval, &json!({"spec": {"decision": decision}})).await
    }

    /// Changes an Approval, as `kubectl patch --type merge` does.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn changes(&self, approval: &Approval, patch: &Value) -> Result<(), String> {
        said(self.api.patch(&approval.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Changes the status of an Approval.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn changes_status(&self, approval: &Approval, status: &Value) -> Result<(), String> {
        let patch = json!({"status": status});
        said(self.api.patch_status(&approval.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await)
    }

    /// Makes an Approval.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn makes(&self, approval: &Approval) -> Result<(), String> {
        said(self.api.create(&write(), approval).await)
    }
}

fn said<T>(answer: kube::Result<T>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(other) => panic!("the API server should have answered: {other}"),
    }
}
