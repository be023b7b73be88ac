//! The examples of the requirement documents, and the special cases of `docs/explanation/engine.md`.

use super::*;
use bloomery_crds::run::WORKER_LEVEL;
use proptest::prelude::*;
use rstest::rstest;

const CATALOGUE: [&str; 3] = ["deleteFile", "process_refund", "files/delete.all"];

fn compiled(text: &str, list: RuleList) -> Rule {
    compile(text, list, &CATALOGUE.into_iter().collect())
}

fn threshold(field: &str, operator: Comparison, value: &str, broken_when: bool, verdict: Verdict) -> RuleEffect {
    let value = value.parse().unwrap();
    RuleEffect::Threshold(Threshold { field: field.into(), operator, value, broken_when, verdict })
}

fn deny(tool: &str) -> RuleEffect {
    RuleEffect::ToolDeny { tool: tool.into() }
}

fn approval(tool: &str) -> RuleEffect {
    RuleEffect::RequiresApproval { tool: tool.into() }
}

#[rstest]
#[case::never_use_delete_file("Never use deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::amount_needs_approval(
    "amount > 500 needs approval",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500", true, Verdict::Hold)
)]
#[case::process_refund_requires_approval(
    "process_refund requires approval",
    RuleList::Always,
    approval("process_refund")
)]
fn an_example_of_a_pattern_compiles(#[case] text: &str, #[case] list: RuleList, #[case] effect: RuleEffect) {
    let rule = compiled(text, list);
    assert_eq!(rule.effects, [effect]);
    assert!(!rule.stays_text);
    assert_eq!(rule.fault, None);
}

#[rstest]
#[case::never_share_payment_info("Never share payment info", RuleList::Never)]
#[case::never_be_dismissive("Never be dismissive", RuleList::Never)]
#[case::always_verify_identity_first("Always verify identity first", RuleList::Always)]
fn an_example_of_prose_stays_text(#[case] text: &str, #[case] list: RuleList) {
    let rule = compiled(text, list);
    assert_eq!((rule.effects, rule.stays_text, rule.fault), (vec![], true, None));
}

#[rstest]
#[case::full_stop("Never use deleteFile.", RuleList::Never, deny("deleteFile"))]
#[case::another_verb("Never call deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::a_prefix_after_another_verb("Never run delete*", RuleList::Never, deny("deleteFile"))]
#[case::without_a_verb("Never deleteFile", RuleList::Always, deny("deleteFile"))]
#[case::other_case("NEVER USE deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::in_the_other_list("Never use deleteFile", RuleList::Always, deny("deleteFile"))]
#[case::an_article("Never use the deleteFile tool", RuleList::Never, deny("deleteFile"))]
#[case::the_word_tool("Never use the tool `deleteFile`.", RuleList::Never, deny("deleteFile"))]
#[case::the_tools_of_a_prefix("Never call the delete* tools", RuleList::Never, deny("deleteFile"))]
#[case::never_ever("Never ever use deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::to_allow("Never allow deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::do_not("Do not use deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::do_not_in_short("Don't run deleteFile", RuleList::Always, deny("deleteFile"))]
#[case::without_never("the deleteFile tool", RuleList::Never, deny("deleteFile"))]
#[case::to_avoid("Avoid deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::always_to_avoid("Always avoid using the deleteFile tool.", RuleList::Always, deny("deleteFile"))]
#[case::to_avoid_a_prefix("Avoid delete*", RuleList::Never, deny("deleteFile"))]
#[case::politely("Please do not use deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::politely_never("Please never allow the use of deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::must_not("You must not call `deleteFile`.", RuleList::Never, deny("deleteFile"))]
#[case::not_allowed_to("You are not allowed to run deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::to_refrain("Refrain from calling deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::no("No deleteFile", RuleList::Never, deny("deleteFile"))]
#[case::is_forbidden("deleteFile is forbidden.", RuleList::Never, deny("deleteFile"))]
#[case::is_not_allowed("The deleteFile tool is not allowed", RuleList::Always, deny("deleteFile"))]
#[case::must_never_be("process_refund must never be called", RuleList::Never, deny("process_refund"))]
#[case::names_that_are_no_words("Never use files/delete.all", RuleList::Never, deny("files/delete.all"))]
#[case::never_is_the_forbidden_range(
    "amount > 500",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500", true, Verdict::Deny)
)]
#[case::never_with_its_word(
    "Never amount >= 500",
    RuleList::Never,
    threshold("amount", Comparison::AtLeast, "500", true, Verdict::Deny)
)]
#[case::always_is_the_required_range(
    "amount <= 500",
    RuleList::Always,
    threshold("amount", Comparison::AtMost, "500", false, Verdict::Deny)
)]
#[case::always_with_its_word(
    "Always amount < 500",
    RuleList::Always,
    threshold("amount", Comparison::LessThan, "500", false, Verdict::Deny)
)]
#[case::approval_holds_when_true_under_always_too(
    "amount > 500 requires approval",
    RuleList::Always,
    threshold("amount", Comparison::MoreThan, "500", true, Verdict::Hold)
)]
#[case::a_fraction_is_read_whole(
    "amount > 500.50",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500.5", true, Verdict::Deny)
)]
#[case::a_fraction_before_a_full_stop(
    "amount > 500.50.",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500.5", true, Verdict::Deny)
)]
#[case::negative(
    "balance < -20",
    RuleList::Never,
    threshold("balance", Comparison::LessThan, "-20", true, Verdict::Deny)
)]
#[case::without_blanks(
    "amount>500",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500", true, Verdict::Deny)
)]
#[case::emphasis("**Never use** _deleteFile_.", RuleList::Never, deny("deleteFile"))]
#[case::emphasis_of_the_sentence(
    "**amount > 500.**",
    RuleList::Never,
    threshold("amount", Comparison::MoreThan, "500", true, Verdict::Deny)
)]
#[case::emphasis_of_a_held_tool("*process_refund* requires approval", RuleList::Always, approval("process_refund"))]
#[case::plural_verb("process_refund need approval", RuleList::Always, approval("process_refund"))]
#[case::approval_with_always("Always process_refund requires approval", RuleList::Always, approval("process_refund"))]
#[case::a_field_named_like_a_tool(
    "process_refund > 1",
    RuleList::Never,
    threshold("process_refund", Comparison::MoreThan, "1", true, Verdict::Deny)
)]
fn a_whole_sentence_that_is_a_pattern_compiles(#[case] text: &str, #[case] list: RuleList, #[case] effect: RuleEffect) {
    let rule = compiled(text, list);
    assert_eq!(rule.effects, [effect]);
    assert!(!rule.stays_text);
}

/// An older worker reads such a sentence as text and lets the call pass. If a new kind of sentence compiles, list one of it here, with a
/// higher level than that of the last release (`docs/explanation/versions.md`).
#[rstest]
#[case::the_first(1, &["Never use deleteFile", "Never deleteFile > 1", "process_refund requires approval"])]
#[case::patterns_and_names(2, &["Never use delete*", "deleteFile"])]
#[case::other_words(3, &[
    "Never call deleteFile", "Never deleteFile", "Never ever use deleteFile", "Never use the deleteFile tool", "*",
    "Do not use deleteFile", "Don't run deleteFile", "**Never use** _deleteFile_", "Avoid deleteFile", "No deleteFile",
    "Please do not use deleteFile", "You must not call deleteFile", "deleteFile is forbidden", "deleteFile must not be used",
])]
fn sentences_that_older_workers_read_as_text_need_a_higher_level(#[case] level: u32, #[case] sentences: &[&str]) {
    assert!(WORKER_LEVEL >= level, "raise WORKER_LEVEL to {level}");
    for sentence in sentences {
        assert_ne!(compiled(sentence, RuleList::Never).effects, [], "{sentence}");
    }
}

#[rstest]
#[case::not_in_the_catalogue("Never use profanity", Some("there is no tool"))]
#[case::approval_of_what_is_no_tool("refunding requires approval", Some("there is no tool"))]
#[case::a_misspelt_tool_after_another_verb("Never call delete_files", Some("there is no tool"))]
#[case::a_prefix_of_no_tool("Never call send_*", Some("there is no tool"))]
#[case::a_misspelt_tool_without_a_verb("Never delete_files", Some("there is no tool"))]
#[case::a_word_after_another_verb("Never call customers", None)]
#[case::an_emphasized_word("Never call *anyone*", None)]
#[case::an_emphasized_adverb("Never _ever_ lie", None)]
#[case::an_emphasized_word_alone("_never_", None)]
#[case::a_star_after_a_verb("Never run *", Some("\"*\" alone is not the name of a tool"))]
#[case::a_star_without_a_verb("Never *", Some("\"*\" alone is not the name of a tool"))]
#[case::a_star_that_needs_approval("* requires approval", Some("\"*\" alone is not the name of a tool"))]
#[case::a_star_in_a_sentence("Never use * for multiplication", None)]
#[case::an_article_before_prose("Never use the internet", None)]
#[case::a_style_to_avoid("Avoid snake_case", None)]
#[case::a_forbidden_style("snake_case is forbidden", None)]
#[case::prose_to_avoid("Avoid using slang", None)]
#[case::no_things("No refunds", None)]
#[case::not_the_whole_softer_rule("Avoid deleteFile on Fridays", None)]
#[case::a_condition_of_a_softer_rule("deleteFile is not allowed before noon", None)]
#[case::a_double_negation("Never avoid deleteFile", None)]
#[case::polite_prose("Please do not lie", None)]
#[case::no_tool_in_particular("Never use the tools", Some("it does not name a tool"))]
#[case::any_tool("Never call any tool", Some("it does not name a tool"))]
#[case::any_tools("Never use any tools.", Some("it does not name a tool"))]
#[case::any_of_the_tools("Do not run any of your tools", Some("it does not name a tool"))]
#[case::any_tool_in_a_sentence("Never call any tool twice", None)]
#[case::tools_in_prose("Never praise tools", None)]
#[case::a_misspelt_tool_with_an_article("Never use the delete_files tool", Some("there is no tool"))]
#[case::not_the_whole_rule("Never use deleteFile on Fridays", None)]
#[case::a_pattern_within_a_sentence("If amount > 500 ask a person", None)]
#[case::two_words_are_no_field("order amount > 500", None)]
#[case::a_number_with_a_comma("amount > 1,000", Some("\"1,000\" is not a plain number"))]
#[case::a_number_with_a_suffix("amount > 10k", Some("\"10k\" is not a plain number"))]
#[case::a_number_with_a_currency("amount > $500", Some("\"$500\" is not a plain number"))]
#[case::a_number_with_a_unit("amount > 500 dollars needs approval", Some("\"500 dollars\" is not a plain number"))]
#[case::a_number_with_two_points("amount > 1.000.000", Some("is not a plain number"))]
#[case::a_number_that_no_integer_holds("amount > 99999999999999999999", Some("is not a plain number"))]
#[case::a_word_for_a_number("amount > limit", None)]
#[case::another_comparison("amount == 500", None)]
#[case::an_approver_in_between("process_refund requires supervisor approval", None)]
#[case::the_other_word_first("Always amount > 500", Some("contradicts"))]
#[case::never_before_an_approval("Never amount > 500 needs approval", Some("contradicts"))]
#[case::over_500_without_approval("Never process refunds over $500 without supervisor approval", None)]
#[case::an_exception_to_a_deny("Never use deleteFile unless asked", None)]
#[case::an_exception_to_a_threshold("amount > 500 needs approval except for staff", None)]
#[case::empty("", None)]
fn a_sentence_that_is_no_pattern_stays_text(#[case] text: &str, #[case] lint: Option<&str>) {
    let rule = compiled(text, RuleList::Never);
    assert_eq!(rule.effects, [], "{text}");
    assert!(rule.stays_text);
    match lint {
        Some(part) => assert!(rule.fault.unwrap().to_string().contains(part)),
        None => assert_eq!(rule.fault, None),
    }
}

#[test]
fn a_star_denies_every_tool_if_it_is_the_whole_rule_under_never() {
    let rule = compiled("*", RuleList::Never);
    assert_eq!(rule.effects, [deny("deleteFile"), deny("files/delete.all"), deny("process_refund")]);
    assert_eq!(compiled("*", RuleList::Always).effects, []);
}

#[rstest]
#[case::a_list_of_markdown("* Never share data without approval", &[])]
#[case::without("Never call process_refund without supervisor approval", &["process_refund"])]
#[case::unless("process_refund requires approval, unless amount < 100.", &["process_refund"])]
#[case::except("`process_refund` and deleteFile need approval except at night", &["deleteFile", "process_refund"])]
fn an_exception_with_approval_and_a_tool_holds_every_call_and_stays_text(#[case] text: &str, #[case] tools: &[&str]) {
    let rule = compiled(text, RuleList::Never);
    assert_eq!(rule.effects, tools.iter().map(|tool| approval(tool)).collect::<Vec<_>>());
    assert!(rule.stays_text);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*") {
        for list in [RuleList::Never, RuleList::Always] {
            let rule = compiled(&text, list);
            prop_assert_eq!(rule.effects.is_empty() && !rule.stays_text, false);
        }
    }

    #[test]
    fn no_sequence_of_rule_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "never", "always", "use", "deleteFile", "amount", ">", "<=", "500", "5.", "-", "1e9", "needs", "approval", "unless",
    ]), 0..8)) {
        let _ = compiled(&words.join(" "), RuleList::Always);
        let _ = compiled(&words.concat(), RuleList::Never);
    }
}
