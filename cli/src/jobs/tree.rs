//! `bloomery tree`: shows Skills with their Jobs, the Jobs that these invoke, Approvals and pods.

use super::client::{self, Client};
use super::cluster_command::ClusterCommand;
use super::{page, show, state};
use crate::args::TreeArgs;
use crate::cluster::{Right, list_all};
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, text};
use bloomery_crds::children::MAX_DEPTH;
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names::{GROUP, LABEL_JOB};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, Job, Skill};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The objects of a namespace.
#[derive(Debug, Default)]
struct NamespaceObjects {
    /// The Skills; `None` if they cannot be read.
    skills: Option<Vec<Skill>>,
    jobs: Vec<Job>,
    approvals: Vec<Approval>,
    pods: Vec<Pod>,
}

impl NamespaceObjects {
    /// Returns the Skill with this name.
    fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().flatten().find(|skill| skill.name_any() == *name)
    }

    /// Returns the Jobs that a Job has invoked.
    fn children_of(&self, job: &Job) -> impl Iterator<Item = &Job> {
        let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
        self.jobs.iter().filter(move |child| {
            child.spec.parent.as_ref().is_some_and(|parent| parent.name == name && parent.uid == uid)
        })
    }

    /// Returns the Job that has invoked a Job.
    fn parent_of(&self, job: &Job) -> Option<&Job> {
        let parent = job.spec.parent.as_ref()?;
        self.jobs.iter().find(|other| other.name_any() == parent.name && other.uid().as_ref() == Some(&parent.uid))
    }

    /// Returns a Job and the Jobs below it, in the order of the tree.
    fn family_of<'a>(&'a self, job: &'a Job) -> Vec<&'a Job> {
        let mut family = vec![job];
        self.add_descendants(job, 1, &mut family);
        family
    }

    fn add_descendants<'a>(&'a self, job: &'a Job, depth: u32, family: &mut Vec<&'a Job>) {
        for child in self.children_of(job).filter(|_| depth < MAX_DEPTH) {
            family.push(child);
            self.add_descendants(child, depth + 1, family);
        }
    }

    /// Returns the Approvals of a Job.
    fn approvals_of(&self, job: &Job) -> impl Iterator<Item = &Approval> {
        let uid = job.uid().unwrap_or_default();
        self.approvals.iter().filter(move |approval| approval.spec.job_uid == uid)
    }

    /// Returns the pods of a Job.
    fn pods_of(&self, job: &Job) -> impl Iterator<Item = &Pod> {
        let uid = job.uid().unwrap_or_default();
        self.pods.iter().filter(move |pod| pod.owner_references().iter().any(|owner| owner.uid == uid))
    }
}

/// A line of the tree, with the branches below it.
#[derive(Debug)]
struct Branch {
    line: String,
    below: Vec<Branch>,
}

/// Prints the tree of a namespace, a Skill or a Job.
pub(super) async fn run(args: &TreeArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let client = client::open(command).await?;
    let namespace_objects = read_objects(&client).await?;
    let Some(skills) = select(&namespace_objects, args.name.as_deref()) else {
        let (name, namespace) = (args.name.as_deref().unwrap_or_default(), &client.cluster.namespace);
        return Err(not_found(&namespace_objects, name, namespace));
    };
    if skills.is_empty() {
        text::report(&format!("there are no Skills and no Jobs in {}", client.cluster.namespace));
    }
    let text = match args.output {
        Some(format) => show::format_list(&objects(&skills, &namespace_objects), format)?,
        None => tree_text(&skills, &namespace_objects, Timestamp::now()),
    };
    output::print(&text).map(|()| Exit::Success)
}

/// Returns all objects in the order of the tree, for [`show::format_list`].
fn objects(skills: &[(String, Vec<&Job>)], namespace_objects: &NamespaceObjects) -> Vec<(String, Value)> {
    let mut objects = Vec::new();
    for (name, jobs) in skills {
        let skill = namespace_objects.skill(name);
        objects.extend(skill.map(|skill| (format!("skill.bloomery.dev/{name}\n"), json!(skill))));
        for job in jobs.iter().flat_map(|job| namespace_objects.family_of(job)) {
            objects.push(show::list_item(job));
            let with_name =
                |approval: &Approval| (format!("approval.bloomery.dev/{}\n", approval.name_any()), json!(approval));
            objects.extend(namespace_objects.approvals_of(job).map(with_name));
            objects.extend(namespace_objects.pods_of(job).map(|pod| (format!("pod/{}\n", pod.name_any()), json!(pod))));
        }
    }
    objects
}

/// Reads the objects of the namespace. If Skills, Approvals or pods cannot be read, reports that and leaves them out.
///
/// # Errors
/// If the Jobs cannot be read.
async fn read_objects(client: &Client) -> Result<NamespaceObjects, Error> {
    let jobs = client.jobs(false).await?;
    let (kube_client, namespace) = (&client.cluster.client, &client.cluster.namespace);
    let list_right = |resource| Right { group: GROUP, verb: "list", resource, name: None };
    let skills =
        list_all(&Api::<Skill>::namespaced(kube_client.clone(), namespace), ListParams::default(), |_| true).await;
    let approvals = client.cluster.approvals(|_| true).await;
    let of_jobs = ListParams::default().labels(LABEL_JOB);
    let pods = list_all(&Api::<Pod>::namespaced(kube_client.clone(), namespace), of_jobs, |_| true).await;
    Ok(NamespaceObjects {
        skills: ok_or_report(client, "Skills", list_right("skills"), skills).await,
        jobs,
        approvals: ok_or_report(client, "Approvals", list_right("approvals"), approvals).await.unwrap_or_default(),
        pods: ok_or_report(client, "pods", Right::on_pods("list", "pods"), pods).await.unwrap_or_default(),
    })
}

/// Returns the listed objects. If they cannot be listed, reports the error and returns `None`.
async fn ok_or_report<K: Clone>(
    client: &Client,
    what: &str,
    right: Right,
    list: kube::Result<Vec<K>>,
) -> Option<Vec<K>> {
    match list {
        Ok(list) => Some(list),
        Err(error) => {
            let error = client.cluster.refusal_error(&format!("{what} are not shown"), &error, vec![right]).await;
            text::report(&error.message);
            None
        }
    }
}

/// Selects Skills and their Jobs: all, those of the named Skill, or the named Job only. Returns `None` if no Skill or Job has the
/// name. Jobs may name a Skill that does not exist. A Job is not selected if it is below its parent in the tree.
fn select<'a>(namespace_objects: &'a NamespaceObjects, name: Option<&str>) -> Option<Vec<(String, Vec<&'a Job>)>> {
    let named = namespace_objects
        .skills
        .iter()
        .flatten()
        .map(ResourceExt::name_any)
        .chain(namespace_objects.jobs.iter().map(|job| job.spec.skill.clone()));
    let skills: BTreeSet<String> = named.collect();
    let jobs_of = |skill: &str| namespace_objects.jobs.iter().filter(|job| job.spec.skill == skill).collect::<Vec<_>>();
    let Some(name) = name else {
        let roots_of = |skill: &str| {
            let jobs = jobs_of(skill).into_iter();
            jobs.filter(|job| namespace_objects.parent_of(job).is_none()).collect()
        };
        return Some(skills.into_iter().map(|skill| (skill.clone(), roots_of(&skill))).collect());
    };
    if skills.contains(name) {
        return Some(vec![(name.to_owned(), jobs_of(name))]);
    }
    let job = namespace_objects.jobs.iter().find(|job| job.name_any() == name)?;
    Some(vec![(job.spec.skill.clone(), vec![job])])
}

/// Returns the error for a name without a Skill or a Job.
fn not_found(namespace_objects: &NamespaceObjects, name: &str, namespace: &str) -> Error {
    let skills = namespace_objects.skills.iter().flatten().map(ResourceExt::name_any);
    let known: Vec<String> = skills.chain(namespace_objects.jobs.iter().map(ResourceExt::name_any)).collect();
    let near = nearest::did_you_mean(name, known.iter().map(String::as_str));
    Error::usage(format!("the namespace {namespace} has no Skill and no Job {name}.{near}"))
}

/// Formats the tree.
fn tree_text(skills: &[(String, Vec<&Job>)], namespace_objects: &NamespaceObjects, now: Timestamp) -> String {
    let mut text = String::new();
    for (name, jobs) in skills {
        let could_read_skills = namespace_objects.skills.is_some();
        let readiness = match namespace_objects.skill(name) {
            Some(skill) => readiness(skill),
            None if could_read_skills => "does not exist".to_owned(),
            None => String::new(),
        };
        let branch = Branch {
            line: format!("Skill {name}  {readiness}"),
            below: jobs.iter().map(|job| job_branch(job, namespace_objects, (1, now))).collect(),
        };
        write_branch(&mut text, &branch, "", "");
    }
    text
}

/// Writes a branch. `prefix` is the start of its own line, `prefix_below` the start of the lines below.
fn write_branch(text: &mut String, branch: &Branch, prefix: &str, prefix_below: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{prefix}{}", text::sanitized_line(branch.line.trim_end()));
    for (index, child) in branch.below.iter().enumerate() {
        let is_last = index + 1 == branch.below.len();
        let (own, deeper) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write_branch(text, child, &format!("{prefix_below}{own}"), &format!("{prefix_below}{deeper}"));
    }
}

/// Describes whether a Skill is ready.
fn readiness(skill: &Skill) -> String {
    let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match conditions::find(conditions, ConditionType::Ready) {
        Some(ready) if ready.status == "True" => "Ready".to_owned(),
        Some(ready) => format!("{}: {}", ready.reason, ready.message),
        None => "not reconciled yet".to_owned(),
    }
}

fn job_branch(job: &Job, namespace_objects: &NamespaceObjects, (depth, now): (u32, Timestamp)) -> Branch {
    let name = job.name_any();
    let age = page::age(job.metadata.creation_timestamp.as_ref().map(|Time(at)| *at), now);
    let outcome =
        job.status.as_ref().and_then(|status| status.outcome.as_ref()).map(|outcome| outcome.code.to_string());
    let phase = state::phase(job).to_string();
    // Some codes are also the name of a phase.
    let outcome = outcome.filter(|code| *code != phase).map(|code| format!(", {code}")).unwrap_or_default();
    let questions = state::questions(job).iter();
    let questions = questions.map(|question| leaf(format!("Question {}  {}", question.id, question.text)));
    // The Skill of a child is not the branch above it.
    let skill = job.spec.parent.as_ref().map(|_| format!(" of the Skill {}", job.spec.skill)).unwrap_or_default();
    let children = namespace_objects.children_of(job).filter(|_| depth < MAX_DEPTH);
    let children = children.map(|child| job_branch(child, namespace_objects, (depth + 1, now)));
    Branch {
        line: format!("Job {name}{skill}  {phase}{outcome}  {age}"),
        below: questions
            .chain(namespace_objects.approvals_of(job).map(approval_branch))
            .chain(namespace_objects.pods_of(job).map(pod_branch))
            .chain(children)
            .collect(),
    }
}

fn approval_branch(approval: &Approval) -> Branch {
    let spec = &approval.spec;
    let state = match &spec.decision {
        None => format!("open, waits for {}", spec.approver),
        Some(decision) => match state::verdict(approval) {
            Some(counted) if counted != decision.verdict => {
                format!("{counted}: {} by {} came too late", decision.verdict, decision.by)
            }
            Some(_) | None => format!("{} by {}", decision.verdict, decision.by),
        },
    };
    leaf(format!("Approval {}  {}: {state}", approval.name_any(), spec.tool))
}

fn pod_branch(pod: &Pod) -> Branch {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
    let phase = if pod.metadata.deletion_timestamp.is_some() { "Terminating" } else { phase };
    leaf(format!("Pod {}  {phase}", pod.name_any()))
}

fn leaf(line: String) -> Branch {
    Branch { line, below: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ObjectOutput;
    use bloomery_crds::v1alpha1::ParentJob;
    use bloomery_testkit::objects::jobs::{now, with_held_call, with_questions};

    fn namespace_objects() -> NamespaceObjects {
        let mut other = with_questions();
        other.metadata.name = Some("other".into());
        other.metadata.uid = Some("uid-2".into());
        other.spec.skill = "gone".into();
        let skill = json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": {"name": "cs-tier-1"},
            "spec": {"problem": {"statement": "help"}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                                       "lastTransitionTime": "2027-01-15T08:00:00Z"}]},
        });
        let approval = |name: &str, decision: serde_json::Value| -> Approval {
            let approval = json!({
                "apiVersion": "bloomery.dev/v1alpha1", "kind": "Approval", "metadata": {"name": name},
                "spec": {
                    "job": "refund", "jobUid": "uid-1", "approver": "supervisor", "tool": "process_refund", "callId": "c-7",
                    "arguments": "{}", "argumentsDigest": format!("sha256:{}", "0".repeat(64)),
                    "expiresAt": "2027-01-16T08:00:00Z", "decision": decision,
                },
            });
            serde_json::from_value(approval).unwrap()
        };
        let mut too_late: Approval = approval("refund-3", json!({"verdict": "Approve", "by": "jane@acme.io"}));
        too_late.status =
            serde_json::from_value(json!({"counted": {"verdict": "Expired", "at": "2027-01-16T08:00:01Z"}})).unwrap();
        let pod = json!({
            "metadata": {"name": "refund-1-01234", "ownerReferences": [
                {"apiVersion": "bloomery.dev/v1alpha1", "kind": "Job", "name": "refund", "uid": "uid-1"},
            ]},
            "status": {"phase": "Succeeded"},
        });
        NamespaceObjects {
            skills: Some(vec![serde_json::from_value(skill).unwrap()]),
            jobs: vec![with_held_call(), other],
            approvals: vec![
                approval("refund-1", serde_json::Value::Null),
                approval("refund-2", json!({"verdict": "Deny", "by": "joe@acme.io"})),
                too_late,
            ],
            pods: vec![serde_json::from_value(pod).unwrap()],
        }
    }

    #[test]
    fn a_namespace_is_shown_as_a_tree() {
        let namespace_objects = namespace_objects();
        insta::assert_snapshot!(tree_text(&select(&namespace_objects, None).unwrap(), &namespace_objects, now()));
    }

    #[test]
    fn children_are_below_their_parent() {
        let mut namespace_objects = namespace_objects();
        let child = |name: &str, uid: &str, parent: (&str, &str)| {
            let mut job = bloomery_testkit::objects::jobs::job(name);
            job.metadata.uid = Some(uid.into());
            job.spec.skill = "reviewer".into();
            job.spec.parent = Some(ParentJob { name: parent.0.into(), uid: parent.1.into(), call: "c-1".into() });
            job
        };
        namespace_objects.jobs.push(child("refund-1a", "uid-3", ("refund", "uid-1")));
        namespace_objects.jobs.push(child("refund-1a-2b", "uid-4", ("refund-1a", "uid-3")));
        namespace_objects.jobs.push(child("orphan", "uid-5", ("refund", "uid-0")));
        let text = tree_text(&select(&namespace_objects, None).unwrap(), &namespace_objects, now());
        assert!(
            text.contains(
                "   ├─ Pod refund-1-01234  Succeeded\n   \
                 └─ Job refund-1a of the Skill reviewer  Pending  60m\n      \
                 └─ Job refund-1a-2b of the Skill reviewer  Pending  60m\n"
            ),
            "{text}"
        );
        assert!(text.contains("Skill reviewer  does not exist\n└─ Job orphan"), "{text}");
        let of_skill = select(&namespace_objects, Some("reviewer")).unwrap();
        assert_eq!(of_skill[0].1.len(), 3, "a named Skill shows all of its Jobs");
        let all = objects(&select(&namespace_objects, Some("refund")).unwrap(), &namespace_objects);
        let names: Vec<&str> =
            all.iter().map(|(name, _)| name.trim()).filter(|name| name.starts_with("job.")).collect();
        assert_eq!(names, ["job.bloomery.dev/refund", "job.bloomery.dev/refund-1a", "job.bloomery.dev/refund-1a-2b"]);
    }

    #[test]
    fn objects_for_programs_are_in_the_order_of_the_tree() {
        let namespace_objects = namespace_objects();
        let listed = |format| {
            show::format_list(&objects(&select(&namespace_objects, None).unwrap(), &namespace_objects), format).unwrap()
        };
        insta::assert_snapshot!(listed(ObjectOutput::Name));
        let list: Value = serde_json::from_str(&listed(ObjectOutput::Json)).unwrap();
        let kinds: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
        assert_eq!((list["kind"].as_str(), kinds.len()), (Some("List"), listed(ObjectOutput::Name).lines().count()));
    }

    #[test]
    fn a_skill_or_a_job_can_be_selected() {
        let namespace_objects = namespace_objects();
        let shown = |name| {
            select(&namespace_objects, Some(name))
                .map(|skills| tree_text(&skills, &namespace_objects, now()))
                .unwrap_or_default()
        };
        assert!(shown("cs-tier-1").contains("Job refund") && !shown("cs-tier-1").contains("other"));
        assert!(shown("other").starts_with("Skill gone  does not exist\n└─ Job other"));
        let unseen = NamespaceObjects { skills: None, ..self::namespace_objects() };
        assert!(
            tree_text(&select(&unseen, Some("other")).unwrap(), &unseen, now()).starts_with("Skill gone\n└─ Job other")
        );
        assert!(select(&namespace_objects, Some("refnud")).is_none());
        assert!(not_found(&namespace_objects, "refnud", "acme").message.ends_with("Did you mean \"refund\"?"));
    }
}
