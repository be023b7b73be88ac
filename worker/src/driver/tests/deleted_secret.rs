//! A Secret that is deleted while its Job runs. The kubelet then removes the file of the key.

use super::*;
use std::sync::Arc;

/// Returns whether a report says that the run waits for the key of the Model.
fn waits_for_key(received: &Received) -> bool {
    let waiting = received.report.waiting.as_ref();
    matches!(waiting, Some(ExternalWait::SecretMissing { name, key, until: Some(_) }) if name == "llm" && key == "token")
}

#[tokio::test]
async fn an_attempt_waits_for_a_key_that_was_removed_between_two_requests_and_goes_on() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let path = stand.dir.path().join("key");
    fs::write(&path, "sk-1").unwrap();
    stand.key = Some(KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() });
    let removed = path.clone();
    // There are two effects between the second and the third request, and the first of them removes the file.
    stand.shop.before_effect = Some(Arc::new(move |_| drop(fs::remove_file(&removed))));
    let stand = stand;
    let restore = async {
        stand.operator.until_received(|received| received.iter().any(waits_for_key)).await;
        assert!(!path.exists());
        // No tokens are reserved while no request can be sent.
        let requested = stand.events().into_iter().filter(|name| *name == "model.requested").count();
        assert_eq!((requested, stand.model.request_count()), (2, 2));
        fs::write(&path, "sk-1").unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run(1), restore);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    assert_eq!(stand.termination(1).epoch, Some(1));
    assert_eq!(stand.reports().last().unwrap().report.waiting, None);
    // No request and no effect is repeated.
    assert_eq!((stand.model.request_count(), stand.shop.effects().len()), (5, 2));
}
