//! The suite of conversations: each is held on the cluster and without one, and ends the same way in both.
//!
//! A case says what is applied and what the model answers; how it ended stands in `suite/told/<case>.yaml`, one file
//! for both places. The stories of this crate hold each case in a tenant, the tests of `cli/` with `bloomery run`.
//!
//! A case that is new, or ends differently on purpose: `SUITE_WRITE=1 cargo test --workspace --test local suite` writes
//! what local mode had to say, to be read before it is committed.

pub mod cases;
mod told;

use bloomery_crds::v1alpha1::{ApprovalVerdict, Limits, ModelProvider, ModelSpec, SkillSpec};

use crate::script::Conversation;

pub use self::told::{Told, are_all_told};

/// What the Skill of a case is called.
pub const SKILL: &str = "cs-tier-1";

/// The resource to which an empty folder is bound, where the Skill declares it.
pub const FOLDER: &str = "codebase";

/// The resource to which the ledger's API is bound, where the Skill declares it.
pub const LEDGER: &str = "ledger";

/// The approver of held calls.
pub const APPROVER: &str = "supervisor";

/// Who decides for them.
pub const DECIDES: &str = "jane@acme.io";

/// The hold at which a worker is killed while the model thinks.
pub const THINKING: &str = "thinking";

/// What happens to the first Job of a case while it runs; each place does it in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The model thinks, at the hold [`THINKING`]: the worker is killed, and another goes on.
    WorkerKilledWhileTheModelThinks,
    /// This order was refunded, and its call is not answered yet: the worker is killed, and another goes on.
    WorkerKilledAfterRefund(&'static str),
    /// This order was refunded, and its call is not answered yet: the MCP server is killed.
    ServerKilledAfterRefund(&'static str),
}

/// Conversations that a place holds and that end as is told.
#[derive(Clone, Debug)]
pub struct Case {
    /// The Skill, without an MCP server.
    pub skill: SkillSpec,
    /// Whether it has the shop's MCP server.
    pub has_orders: bool,
    /// The Models; their `base_url` is a path of the scripted model, `/v1` for one that answers.
    pub models: Vec<(&'static str, ModelSpec)>,
    /// What the model answers.
    pub conversations: Vec<Conversation>,
    /// The goals of its Jobs: each begins when the one before has ended.
    pub goals: Vec<&'static str>,
    /// What its Jobs may spend.
    pub limits: Option<Limits>,
    /// What goes wrong.
    pub mishap: Option<Mishap>,
    /// What people answer to the questions of its Job, the oldest first, each once it rests with it.
    pub replies: Vec<&'static str>,
    /// What the [`APPROVER`] decides on the held call of its Job, once it rests with it.
    pub decision: Option<Decision>,
}

/// What a person decides on a held call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `Approve` or `Deny`.
    pub verdict: ApprovalVerdict,
    /// Why.
    pub reason: &'static str,
}

impl Case {
    /// A Skill with the shop's MCP server, and one Job that the Model `default` answers.
    pub fn of(skill: SkillSpec, goal: &'static str, conversation: Conversation) -> Self {
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

    /// Whether people have something to do for its Job to go on.
    pub fn needs_people(&self) -> bool {
        !self.replies.is_empty() || self.decision.is_some()
    }

    /// Whether its Jobs bind this resource.
    pub fn binds(&self, name: &str) -> bool {
        self.skill.resources.iter().any(|resource| resource.name == name)
    }

    /// The Models as a place has them whose scripted model is at this address.
    pub fn models_at(&self, origin: &str) -> impl Iterator<Item = (&'static str, ModelSpec)> {
        self.models.iter().map(move |(name, model)| {
            let base_url = format!("{origin}{}", model.base_url);
            (*name, ModelSpec { base_url, ..model.clone() })
        })
    }

    #[must_use]
    fn speaking(mut self, provider: ModelProvider) -> Self {
        for (_, model) in &mut self.models {
            model.provider = provider;
        }
        self
    }

    #[must_use]
    fn suffering(self, mishap: Mishap) -> Self {
        Self { mishap: Some(mishap), ..self }
    }

    /// Is held where people answer so.
    #[must_use]
    fn answered(self, replies: &[&'static str]) -> Self {
        Self { replies: replies.to_vec(), ..self }
    }

    /// Is held where somebody decides so.
    #[must_use]
    fn decided(self, verdict: ApprovalVerdict, reason: &'static str) -> Self {
        Self { decision: Some(Decision { verdict, reason }), ..self }
    }

    #[must_use]
    fn with(mut self, change: impl FnOnce(&mut SkillSpec)) -> Self {
        change(&mut self.skill);
        self
    }
}

/// A Model of the scripted model.
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

/// Makes a test of each case, which hands its name and the case to a function that holds it somewhere.
#[macro_export]
macro_rules! suite {
    ($hold:path) => {
        $crate::suite! { $hold:
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
    ($hold:path: $($case:ident),+ $(,)?) => {
        #[test]
        fn what_is_told_of_is_held() {
            $crate::suite::are_all_told(&[$(stringify!($case)),+]);
        }

        $(
            #[tokio::test]
            async fn $case() {
                $hold(stringify!($case), $crate::suite::cases::$case()).await;
            }
        )+
    };
}
