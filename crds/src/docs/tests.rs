use super::*;
use proptest::prelude::*;
use rstest::rstest;

const REFUNDS: &str = "How the shop works.

# Shop
All amounts are in EUR.

## Refunds
Refund within 30 days.

### Limits
At most 500.

```sh
# a comment, no header
```

## Orders & Returns ##
Orders have numbers.

### Limits
At most 10.
";

fn text(reference: &str) -> Option<String> {
    let docs = Docs::new(REFUNDS);
    let section = docs.find(reference)?;
    Some(section.text.lines().nth(1).unwrap_or_default().to_owned())
}

#[rstest]
#[case::an_anchor("#refunds", Some("Refund within 30 days."))]
#[case::a_title("Refunds", Some("Refund within 30 days."))]
#[case::another_case("#REFUNDS", Some("Refund within 30 days."))]
#[case::a_title_with_punctuation("#Orders & Returns", Some("Orders have numbers."))]
#[case::its_anchor("#orders--returns", Some("Orders have numbers."))]
#[case::the_first_of_two("#limits", Some("At most 500."))]
#[case::the_second_of_two("#limits-1", Some("At most 10."))]
#[case::within_another("#orders--returns/limits", Some("At most 10."))]
#[case::within_one_further_out("#shop/limits-1", Some("At most 10."))]
#[case::all_names("#shop/refunds/limits", Some("At most 500."))]
#[case::in_another_section("#limits/refunds", None)]
#[case::a_comment_in_code("#a-comment-no-header", None)]
#[case::a_part_of_a_title("#orders", None)]
#[case::nothing("#", None)]
#[case::an_empty_name("#refunds/", None)]
#[case::too_many_names("#shop/shop", None)]
fn a_reference_names_a_section(#[case] reference: &str, #[case] expected: Option<&str>) {
    assert_eq!(text(reference).as_deref(), expected);
}

#[test]
fn a_section_ends_at_the_next_header_and_lists_the_sections_in_it() {
    let docs = Docs::new(REFUNDS);
    assert_eq!(docs.introduction, "How the shop works.");
    assert_eq!(docs.read("#refunds").unwrap(), "## Refunds\nRefund within 30 days.\n\nSections in it:\n    - #limits");
    assert_eq!(docs.read("#limits").unwrap(), "### Limits\nAt most 500.\n\n```sh\n# a comment, no header\n```");
    let outline: Vec<String> = docs.outline().collect();
    assert_eq!(outline, ["- #shop", "  - #refunds", "    - #limits", "  - #orders--returns", "    - #limits-1"]);
    assert_eq!(docs.read("#limit"), None);
}

#[rstest]
#[case::a_slip("#refnuds", Some("#refunds"))]
#[case::in_a_section("#shop/limit", Some("#limits"))]
#[case::something_else("#shipping", None)]
#[case::nothing("#", None)]
fn the_nearest_section_is_found(#[case] reference: &str, #[case] expected: Option<&str>) {
    assert_eq!(Docs::new(REFUNDS).nearest(reference).as_deref(), expected);
}

#[rstest]
#[case::six_marks("###### a", &["a"])]
#[case::seven_marks("####### a", &[])]
#[case::no_blank("#a", &[])]
#[case::no_title("#\n# #\n#", &["section", "section-1", "section-2"])]
#[case::a_tab("#\ta", &["a"])]
#[case::carriage_returns("# a\r\ntext\r\n## b\r\n", &["a", "b"])]
#[case::three_blanks("   # a", &["a"])]
#[case::four_blanks("    # a", &[])]
#[case::a_mark_of_the_title("# C#", &["c"])]
#[case::no_letters("# ???\n# !!!", &["section", "section-1"])]
#[case::other_scripts("# Überblick\n# 概要", &["überblick", "概要"])]
#[case::a_level_is_left_out("### a\n# b\n### c", &["a", "b", "c"])]
#[case::a_title_that_is_an_anchor("# a\n# a\n# a 1\n# a", &["a", "a-1", "a-1-1", "a-2"])]
#[case::tildes("~~~\n# a\n```\n~~~\n# b", &["b"])]
#[case::a_longer_fence("````\n```\n# a\n````\n# b", &["b"])]
#[case::a_fence_with_a_language("```sh\n# a\n```sh\n# b\n```\n# c", &["c"])]
#[case::an_open_fence("# a\n```\n# b", &["a"])]
#[case::code_in_a_paragraph("```x``` is code\n# a", &["a"])]
#[case::nothing("", &[])]
fn headers_are_those_of_common_mark(#[case] markdown: &str, #[case] anchors: &[&str]) {
    let docs = Docs::new(markdown);
    assert_eq!(docs.sections.iter().map(|section| section.anchor.as_str()).collect::<Vec<_>>(), anchors);
}

proptest! {
    #[test]
    fn the_sections_have_all_of_the_document_and_each_is_found_by_its_anchor(
        lines in prop::collection::vec("(#{1,7} ?)?(a|B|a 1|```|~~~~| |Ü|/|-){0,3}", 0..24),
    ) {
        let markdown = lines.join("\n");
        let docs = Docs::new(&markdown);
        let texts = std::iter::once(docs.introduction).chain(docs.sections.iter().map(|section| section.text));
        let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
        prop_assert_eq!(without_blanks(&texts.collect::<Vec<_>>().join("\n")), without_blanks(&markdown));
        prop_assert_eq!(docs.outline().count(), docs.sections.len());
        for section in &docs.sections {
            let found = docs.find(&format!("#{}", section.anchor));
            prop_assert_eq!(found, Some(section));
            let title = section.text.lines().next().unwrap_or_default().trim_start().trim_start_matches('#');
            // The title names this section, or an earlier one of the same name.
            prop_assert!(slug(title).is_empty() || title.contains('/') || docs.find(title).is_some(), "{title}");
        }
    }

    #[test]
    fn every_text_is_a_document_and_every_text_a_reference(markdown in any::<String>(), reference in any::<String>()) {
        let docs = Docs::new(&markdown);
        prop_assert_eq!(docs.find(&reference).is_some(), docs.read(&reference).is_some());
        docs.nearest(&reference);
    }
}
