//! The protocol of the log as a model, checked in every interleaving (`docs/explanation/engine.md`, section 1).
//!
//! Change this model before you change the protocol. Each rule of the protocol has a [`mutation`], which is the protocol without the
//! rule. The checker must find a violated property for each mutation. If it finds none, the rule is superfluous or not modelled.

#[cfg(test)]
mod attempt;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod volume;
#[cfg(test)]
mod world;

#[cfg(test)]
mod tests {
    use crate::mutation::Mutation;
    use crate::properties;
    use crate::world::{Action, Faults, Protocol, World};
    use rstest::rstest;
    use stateright::{Checker, HasDiscoveries, Model, Path};
    use std::collections::BTreeSet;

    fn check(protocol: Protocol) -> impl Checker<Protocol> {
        protocol.checker().threads(2).spawn_bfs().join()
    }

    fn describe(path: &Path<World, Action>) -> String {
        path.clone().into_actions().iter().map(|action| format!("{action:?}")).collect::<Vec<_>>().join("\n")
    }

    /// Asserts that every property holds, and that every possibility is reached. Returns the number of states.
    fn assert_holds(protocol: Protocol) -> usize {
        let checker = check(protocol);
        for (name, path) in checker.discoveries() {
            assert!(properties::is_possibility(name), "{name} is violated by\n{}", describe(&path));
        }
        let found: BTreeSet<_> = checker.discoveries().into_keys().collect();
        let missing: Vec<_> = checker
            .model()
            .properties()
            .into_iter()
            .filter(|p| properties::is_possibility(p.name) && !found.contains(p.name))
            .collect();
        assert!(missing.is_empty(), "never reached: {:?}", missing.iter().map(|p| p.name).collect::<Vec<_>>());
        checker.unique_state_count()
    }

    /// Returns the violated properties. The check ends once `property` is violated.
    fn violated(protocol: Protocol, property: &'static str) -> Vec<&'static str> {
        let checker = protocol.checker().finish_when(HasDiscoveries::AnyOf([property].into())).spawn_bfs().join();
        checker.discoveries().into_keys().filter(|name| !properties::is_possibility(name)).collect()
    }

    #[test]
    fn two_attempts_keep_all_properties_under_all_faults() {
        let states = assert_holds(Protocol::new(2, Faults { power_losses: 2, lost_replies: 2, kills: true }));
        assert!(states > 1_000, "{states}");
    }

    #[rstest]
    #[case::that_are_killed(Faults { power_losses: 0, lost_replies: 0, kills: true })]
    #[case::that_lose_power(Faults { power_losses: 1, lost_replies: 0, kills: false })]
    #[case::that_lose_replies(Faults { power_losses: 0, lost_replies: 1, kills: false })]
    fn three_attempts_make_calls_that_need_approvals(#[case] faults: Faults) {
        let states = assert_holds(Protocol::new(3, faults).with_approvals());
        assert!(states > 10_000, "{states}");
    }

    /// A worker of another Job, or a pod that the operator did not create, can write to the directory. It makes any two of these
    /// changes, in every interleaving with two attempts:
    ///
    /// - it adds rulings, holds, approvals, denials, starts and lost answers of a call, as a part of an epoch or in an epoch of its own;
    /// - it adds a list of tools that says that all tools only read, first or later;
    /// - it adds an answer with other arguments, and the digest of the real ones;
    /// - it removes the last segment. An addition then replaces it.
    #[test]
    fn the_approval_of_a_read_holds_although_somebody_else_writes_to_the_directory() {
        let states = assert_holds(Protocol::new(2, Faults::NONE).with_liar(2).with_read());
        assert!(states > 100_000, "{states}");
    }

    #[test]
    fn without_its_rule_a_forged_fact_replaces_a_decision() {
        let protocol = Protocol::new(2, Faults::NONE).with_liar(1).with_facts().with(Mutation::BelieveFacts);
        assert!(violated(protocol, properties::DECIDED).contains(&properties::DECIDED));
    }

    #[rstest]
    #[case::approvals_in_the_log(Mutation::BelieveApprovals, properties::APPROVED, 1)]
    #[case::approvals_in_the_log_against_a_denial(Mutation::BelieveApprovals, properties::DENIED, 1)]
    #[case::rulings_in_the_log(Mutation::FollowRulings, properties::APPROVED, 1)]
    #[case::claims_of_a_tampered_log(Mutation::ClaimTampered, properties::UNTOUCHED, 1)]
    #[case::decisions_that_are_passed_once(Mutation::DecisionPassedOnce, properties::HONEST, 0)]
    fn without_one_of_its_rules_an_approval_does_not_hold(
        #[case] mutation: Mutation,
        #[case] property: &'static str,
        #[case] lies: u8,
    ) {
        let faults = Faults { power_losses: 0, lost_replies: 0, kills: true };
        let found = violated(Protocol::new(3, faults).with_liar(lies).with(mutation), property);
        assert!(found.contains(&property), "{mutation:?} violates only {found:?}");
    }

    #[rstest]
    #[case::starts_of_reads(Mutation::FollowStartedReads, 1)]
    #[case::a_stored_digest(Mutation::BelieveDigest, 2)]
    fn without_one_of_its_rules_a_call_is_made_without_an_approval(#[case] mutation: Mutation, #[case] lies: u8) {
        let protocol = Protocol::new(2, Faults::NONE).with_liar(lies).with(mutation);
        let protocol = if mutation == Mutation::FollowStartedReads { protocol.with_read() } else { protocol };
        assert!(violated(protocol, properties::APPROVED).contains(&properties::APPROVED));
    }

    /// The calls need no approval, so that two attempts can make them.
    #[rstest]
    #[case::with_all_rules(None)]
    #[case::rulings_on_a_started_call(Some(Mutation::FollowLateRulings))]
    #[case::the_list_of_tools_in_the_log(Some(Mutation::BelieveCatalogue))]
    fn lines_that_somebody_adds_cause_no_second_refund(#[case] mutation: Option<Mutation>) {
        let lost_replies = u8::from(mutation == Some(Mutation::BelieveCatalogue));
        let protocol = Protocol::new(2, Faults { lost_replies, ..Faults::NONE }).with_liar(1).without_approvals();
        let found = violated(mutation.into_iter().fold(protocol, Protocol::with), properties::ADDED_ONCE);
        assert_eq!(found.contains(&properties::ADDED_ONCE), mutation.is_some(), "{mutation:?}: {found:?}");
    }

    #[rstest]
    #[case::shared_segments(Mutation::AppendToSegment, properties::NEVER_LOST)]
    #[case::adopted_lines(Mutation::AdoptLines, properties::ONE_EFFECT)]
    #[case::a_superseded_attempt_that_continues(Mutation::ContinueSuperseded, properties::NEVER_LOST)]
    #[case::a_claim_without_a_line(Mutation::ActBeforeClaim, properties::CLAIMED)]
    #[case::effects_before_they_are_durable(Mutation::EffectBeforeDurable, properties::DURABLE_FIRST)]
    #[case::an_outcome_that_is_reported_too_early(Mutation::ReportBeforeDurable, properties::DURABLE_FIRST)]
    #[case::a_request_before_its_reserve_is_durable(Mutation::RequestBeforeDurable, properties::DURABLE_FIRST)]
    #[case::a_reported_position_that_is_not_durable(Mutation::PositionWithPending, properties::NEVER_LOST)]
    #[case::names_that_are_not_synced(Mutation::NoSyncOfNames, properties::NEVER_LOST)]
    #[case::content_that_is_not_synced(Mutation::NoSyncOfContent, properties::PROGRESS)]
    #[case::a_prefix_that_is_not_synced(Mutation::NoSyncOfPrefix, properties::GAP_FREE)]
    #[case::names_that_are_not_exclusive(Mutation::NamesReplaced, properties::NEVER_LOST)]
    #[case::started_calls_sent_again(Mutation::StartedSentAgain, properties::ONE_EFFECT)]
    #[case::segments_removed_at_the_end(Mutation::LogRemoved, properties::NEVER_LOST)]
    #[case::a_claim_by_a_lock_file(Mutation::LockFile, properties::PROGRESS)]
    #[case::storage_that_loses_a_name_while_a_worker_runs(Mutation::StorageLosesName, properties::NEVER_LOST)]
    fn without_one_of_its_rules_the_protocol_violates_a_property(
        #[case] mutation: Mutation,
        #[case] property: &'static str,
    ) {
        let faults = Faults { power_losses: 1, lost_replies: 1, kills: true };
        let found = violated(Protocol::new(2, faults).with(mutation), property);
        assert!(found.contains(&property), "{mutation:?} violates only {found:?}");
    }

    /// The largest models, which `make test-all` checks. The result depends on this crate only.
    mod long {
        use super::*;

        #[rstest]
        #[case::that_lose_power(Faults { power_losses: 1, lost_replies: 0, kills: false })]
        #[case::that_lose_replies(Faults { power_losses: 0, lost_replies: 1, kills: false })]
        #[ignore = "visits millions of states: make test-all"]
        fn three_attempts_keep_all_properties_under_one_fault(#[case] faults: Faults) {
            let states = assert_holds(Protocol::new(3, faults));
            assert!(states > 10_000, "{states}");
        }

        #[test]
        #[ignore = "visits millions of states: make test-all"]
        fn three_attempts_make_a_read_that_needs_an_approval() {
            let faults = Faults { power_losses: 0, lost_replies: 1, kills: false };
            let states = assert_holds(Protocol::new(3, faults).with_approvals().with_read());
            assert!(states > 10_000, "{states}");
        }

        /// The writer makes the same changes as in the test of a read's approval, above.
        #[test]
        #[ignore = "visits millions of states: make test-all"]
        fn the_approvals_of_effects_hold_although_somebody_else_writes_to_the_directory() {
            let states = assert_holds(Protocol::new(2, Faults::NONE).with_liar(2));
            assert!(states > 100_000, "{states}");
        }

        /// The same writer adds facts, too, and the rule that holds the calls depends on them.
        #[test]
        #[ignore = "visits millions of states: make test-all"]
        fn the_decisions_of_people_hold_although_somebody_else_writes_facts() {
            let states = assert_holds(Protocol::new(2, Faults::NONE).with_liar(2).with_facts());
            assert!(states > 100_000, "{states}");
        }
    }
}
