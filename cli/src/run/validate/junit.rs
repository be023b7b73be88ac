//! The results as `JUnit` XML, which CI systems read: a suite for each Skill, with a test case for each feature.

use super::report::{FeatureReport, TestResult};
use std::fmt::Write;
use std::time::Duration;

/// Formats the results.
pub fn render(reports: &[FeatureReport]) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(xml, "<testsuites{}>", totals(reports));
    for suite in reports.chunk_by(|one, next| one.skill == next.skill) {
        let name = suite.first().map_or("", |report| report.skill.as_str());
        let _ = writeln!(xml, "  <testsuite name=\"{}\"{}>", escaped(name), totals(suite));
        for report in suite {
            add_case(&mut xml, report);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// Formats the attributes with the totals of features.
fn totals(reports: &[FeatureReport]) -> String {
    let count = |result| reports.iter().filter(|report| report.result == result).count();
    let time: Duration = reports.iter().map(FeatureReport::time).sum();
    format!(
        " tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        reports.len(),
        count(TestResult::Failed),
        count(TestResult::Delegated),
        time.as_secs_f64()
    )
}

/// Adds the test case of a feature.
fn add_case(xml: &mut String, report: &FeatureReport) {
    let (skill, feature) = (escaped(&report.skill), escaped(&report.feature));
    let seconds = report.time().as_secs_f64();
    let _ = write!(xml, "    <testcase classname=\"{skill}\" name=\"{feature}\" time=\"{seconds:.3}\"");
    match report.result {
        TestResult::Passed => xml.push_str("/>\n"),
        TestResult::Failed => {
            let reasons = escaped(&report.reasons().join("\n"));
            let _ = writeln!(xml, ">\n      <failure message=\"{reasons}\"/>\n    </testcase>");
        }
        TestResult::Delegated => {
            let subskill = escaped(report.subskill.as_deref().unwrap_or_default());
            let _ = writeln!(xml, ">\n      <skipped message=\"tested by the Skill {subskill}\"/>\n    </testcase>");
        }
    }
}

/// Escapes a text for the value of an attribute. Characters that XML 1.0 does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // A reader would replace these by blanks.
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{report, test};
    use super::*;

    #[test]
    fn each_skill_is_a_suite() {
        let mut reports = [
            report("greets", None, vec![test(true, 0.9, "")]),
            report("refuses", None, vec![test(false, 0.25, "it says \"<b>\"")]),
            report("lists", Some("lister"), Vec::new()),
        ];
        reports[2].skill = "other".to_owned();
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" skipped="1" time="3.000">
  <testsuite name="greeter" tests="2" failures="1" skipped="0" time="3.000">
    <testcase classname="greeter" name="greets" time="1.500"/>
    <testcase classname="greeter" name="refuses" time="1.500">
      <failure message="it says &quot;&lt;b&gt;&quot;"/>
    </testcase>
  </testsuite>
  <testsuite name="other" tests="1" failures="0" skipped="1" time="0.000">
    <testcase classname="other" name="lists" time="0.000">
      <skipped message="tested by the Skill lister"/>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(render(&reports), expected);
    }

    #[test]
    fn no_character_breaks_the_document() {
        assert_eq!(escaped("a & 'b'\n\u{1b}\u{ffff}\u{e9}"), "a &amp; &apos;b&apos;&#10;\u{fffd}\u{fffd}\u{e9}");
    }
}
