//! The suite of conversations. Each case runs on a cluster and in local mode, and must end the same way in both.
//!
//! A case consists of objects and the answers of the model. `suite/expected/<case>.yaml` has the expected end, one file for
//! both environments. The stories (end-to-end tests) of `e2e` run each case in its own namespace, and the tests of
//! `cli` run it with `bloomery run`.
//!
//! To write the expected end of a new or changed case, run it in local mode: `SUITE_WRITE=1 cargo test --workspace --test local
//! suite`. Review the file before you commit it.

pub mod cases;
mod record;

use bloomery_crds::v1alpha1::{ApprovalVerdict, Limits, ModelProvider, ModelSpec, SkillSpec};

use crate::script::Conversation;

pub use self::record::{CaseRecord, assert_all_recorded};

/// The name of the Skill of each case.
pub const SKILL: &str = "cs-tier-1";

/// The resource that a case binds to an empty folder if its Skill declares it.
pub const FOLDER: &str = "codebase";

/// The resource that a case binds to the ledger's API if its Skill declares it.
pub const LEDGER: &str = "ledger";

/// The approver of held calls.
pub const APPROVER: &str = "supervisor";

/// The user who decides for the [`APPROVER`].
pub const DECIDER: &str = "jane@acme.io";

/// The name of the hold at which the worker is killed while it waits for the model.
pub const THINKING: &str = "thinking";

/// A failure that happens to the first Job of a case while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The worker is killed while it waits for the model at the hold [`THINKING`]. Another worker continues the Job.
    WorkerKilledWhileTheModelThinks,
    /// The worker is killed after the refund of this order and before it receives the result of the call. Another worker
    /// continues the Job.
    WorkerKilledAfterRefund(&'static str),
    /// The MCP server is killed after the refund of this order and before it answers the call.
    ServerKilledAfterRefund(&'static str),
}

/// A Skill, its Models and Jobs, and the script of the model.
#[derive(Clone, Debug)]
pub struct Case {
    /// The Skill, without an MCP server.
    pub skill: SkillSpec,
    /// True if the Skill has the MCP server of [`crate::orders`].
    pub has_orders: bool,
    /// The Models by name. Their `base_url` is a path of the scripted model, such as `/v1`.
    pub models: Vec<(&'static str, ModelSpec)>,
    /// The script of the model.
    pub conversations: Vec<Conversation>,
    /// The goals of the Jobs. Each Job begins when the previous Job has ended.
    pub goals: Vec<&'static str>,
    /// The limits of the Jobs.
    pub limits: Option<Limits>,
    /// The failure of the first Job.
    pub mishap: Option<Mishap>,
    /// The answers to the questions of the Job, the oldest first. Each is given once the Job waits for it.
    pub replies: Vec<&'static str>,
    /// The decision on the held call of the Job, given once the Job waits for it.
    pub decision: Option<Decision>,
}

/// A decision on a held call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `Approve` or `Deny`.
    pub verdict: ApprovalVerdict,
    /// The reason that the person gives.
    pub reason: &'static str,
}

impl Case {
    /// Returns a case with the MCP server of the shop, the Model `default` and one Job.
    pub fn new(skill: SkillSpec, goal: &'static str, conversation: Conversation) -> Self {
        let models = vec![("default", model(ModelProvider::Openai))];
        let conversations = vec![conversation];
        Self {
            skill,
            has_orders: true,
            models,
            conversations,
            goals: vec![goal],
            limits: None,
            mishap: None,
            replies: Vec::new(),
            decision: None,
        }
    }

    /// Returns whether the Job waits for a person.
    pub fn needs_people(&self) -> bool {
        !self.replies.is_empty() || self.decision.is_some()
    }

    /// Returns whether the Jobs bind this resource.
    pub fn binds(&self, name: &str) -> bool {
        self.skill.resources.iter().any(|resource| resource.name == name)
    }

    /// Returns the Models for a scripted model at this address.
    pub fn models_at(&self, origin: &str) -> impl Iterator<Item = (&'static str, ModelSpec)> {
        self.models.iter().map(move |(name, model)| {
            let base_url = format!("{origin}{}", model.base_url);
            (*name, ModelSpec { base_url, ..model.clone() })
        })
    }

    #[must_use]
    fn with_provider(mut self, provider: ModelProvider) -> Self {
        for (_, model) in &mut self.models {
            model.provider = provider;
        }
        self
    }

    #[must_use]
    fn with_mishap(self, mishap: Mishap) -> Self {
        Self { mishap: Some(mishap), ..self }
    }

    /// Answers the questions of the Job.
    #[must_use]
    fn with_replies(self, replies: &[&'static str]) -> Self {
        Self { replies: replies.to_vec(), ..self }
    }

    /// Decides on the held call of the Job.
    #[must_use]
    fn with_decision(self, verdict: ApprovalVerdict, reason: &'static str) -> Self {
        Self { decision: Some(Decision { verdict, reason }), ..self }
    }

    #[must_use]
    fn with_skill(mut self, change: impl FnOnce(&mut SkillSpec)) -> Self {
        change(&mut self.skill);
        self
    }
}

/// Returns a Model that the scripted model serves.
pub fn model(provider: ModelProvider) -> ModelSpec {
    ModelSpec {
        provider,
        model: "scripted".to_owned(),
        base_url: "/v1".to_owned(),
        api_key: None,
        context_window: None,
        max_output_tokens: None,
        timeout: None,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    }
}

/// Defines a test for each case. The test passes the case's name and the case to a function that runs it.
#[macro_export]
macro_rules! suite {
    ($run:path) => {
        $crate::suite! { $run:
            a_refund_passes_every_gate,
            all_six_stages_of_cs_tier_1,
            all_six_stages_with_anthropic,
            a_model_that_fails_is_replaced_by_its_fallback,
            a_model_that_is_busy_is_asked_again,
            a_goal_out_of_domain_is_redirected,
            what_is_denied_is_told_and_the_model_goes_on,
            a_call_that_is_held_waits,
            a_call_that_is_approved_is_made,
            a_call_that_a_person_denies_is_told_and_the_model_goes_on,
            an_answer_without_its_fields_is_handed_over,
            an_answer_that_failed_comes_back_with_evidence,
            an_answer_that_failed_for_its_wording_is_rewritten,
            a_workflow_binds_the_order_of_its_steps,
            tools_are_selected_where_there_are_many,
            files_are_written_read_and_changed_in_what_is_bound_only,
            an_endpoint_is_called_by_its_rules,
            what_one_job_notes_the_next_begins_with,
            a_job_ends_at_its_steps,
            a_model_that_knows_no_schemas_is_asked_in_words,
            a_model_that_writes_as_few_do_is_understood,
            arguments_that_cannot_be_used_are_told,
            a_large_result_is_put_aside_and_read_on,
            a_question_waits_for_its_answer,
            questions_are_put_together_and_so_are_answers,
            a_goal_that_leaves_out_what_is_required_is_completed,
            an_answer_that_a_person_has_to_complete_is_given_anew,
            a_job_whose_worker_is_killed_goes_on,
            thoughts_are_kept_by_the_next_worker_too,
            a_call_whose_server_died_is_left_to_a_person,
            a_call_whose_worker_died_is_left_to_a_person,
            a_tool_that_changes_is_denied_and_the_others_go_on,
        }
    };
    ($run:path: $($case:ident),+ $(,)?) => {
        #[test]
        fn every_case_has_a_record() {
            $crate::suite::assert_all_recorded(&[$(stringify!($case)),+]);
        }

        $(
            #[tokio::test]
            async fn $case() {
                $run(stringify!($case), $crate::suite::cases::$case()).await;
            }
        )+
    };
}
