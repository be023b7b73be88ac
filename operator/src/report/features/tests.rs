use super::*;

fn result(name: &str, passed: bool) -> FeatureResult {
    FeatureResult { name: name.into(), passed, score: Some(0.5), reason: None, tokens: 7, seconds: 2 }
}

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn tested<'a>(job: &'a str, results: &'a [FeatureResult]) -> Tested<'a> {
    Tested { job, revision: "orders-1", results }
}

#[test]
fn the_latest_result_of_each_feature_is_kept() {
    let first = merged(&[], &tested("one", &[result("greets", true), result("lists", true)]), &at(1));
    let second = merged(&first, &tested("two", &[result("greets", false)]), &at(2));
    let kept: Vec<_> = second.iter().map(|kept| (kept.name.as_str(), kept.passed, kept.job.as_str())).collect();
    assert_eq!(kept, [("greets", false, "two"), ("lists", true, "one")]);
    assert_eq!((&second[0].time, &second[1].time), (&at(2), &at(1)));
}

/// A repeated report changes nothing, so it costs no write.
#[test]
fn the_same_result_keeps_its_time() {
    let results = [result("greets", true)];
    let first = merged(&[], &tested("one", &results), &at(1));
    assert_eq!(merged(&first, &tested("one", &results), &at(9)), first);
    let other = merged(&first, &tested("two", &results), &at(9));
    assert_eq!((other[0].job.as_str(), &other[0].time), ("two", &at(9)));
}

#[test]
fn results_of_features_beyond_the_maximum_are_dropped() {
    let results: Vec<_> = (0..FeatureResult::MAX_RESULTS).map(|nth| result(&format!("f-{nth}"), true)).collect();
    let old = merged(&[], &tested("one", &[result("old", true)]), &at(1));
    let all = merged(&old, &tested("two", &results), &at(2));
    assert!(all.len() == FeatureResult::MAX_RESULTS && all.iter().all(|kept| kept.name != "old"));
}

#[test]
fn a_feature_that_passed_before_and_fails_is_named() {
    let passed = merged(&[], &tested("one", &[result("greets", true), result("lists", false)]), &at(1));
    let failed = merged(&passed, &tested("two", &[result("greets", false), result("lists", false)]), &at(2));
    let sentences = ["The feature greets failed in the Job two on orders-1, and passed on orders-1."];
    assert_eq!(lost_features(&passed, &failed), sentences);
    assert_eq!(lost_features(&failed, &failed), [""; 0]);
}
