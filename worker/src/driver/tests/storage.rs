//! A volume that fails during a run ends the epoch with an error that says what to do.

use super::*;
use crate::{attempt, ending};
use bloomery_crds::report::{MAX_TERMINATION_MESSAGE_BYTES, MemoryFault};
use bloomery_journal::files::Files;
use bloomery_journal::fixture::checks::parse;
use bloomery_journal::fixture::failing::Failing;
use rstest::rstest;
use std::io::ErrorKind;

#[rstest]
#[case::full(ErrorKind::StorageFull, "VolumeFull")]
#[case::quota(ErrorKind::QuotaExceeded, "VolumeFull")]
#[case::read_only(ErrorKind::ReadOnlyFilesystem, "VolumeReadOnly")]
#[case::not_ours(ErrorKind::PermissionDenied, "NotWritable")]
#[case::gone(ErrorKind::StaleNetworkFileHandle, "stale network file handle")]
#[tokio::test]
async fn a_failing_volume_ends_the_epoch_with_a_remedy_and_the_next_attempt_repeats_no_effect(
    #[case] kind: ErrorKind,
    #[case] says: &str,
) {
    let mut stand = Stand::with_twelve_steps().await;
    stand.run(1).await;
    let undisturbed = parse(&stand.lines(&Disk));
    let operations = {
        stand.clear();
        let files = Failing::never();
        stand.run_with(1, files.clone(), Stop::default()).await.unwrap();
        files.writes()
    };
    // The full disk is tested at every write. For the others, some writes are enough to see the message.
    let stride = if kind == ErrorKind::StorageFull { 1 } else { 7 };
    for at in (0..operations).step_by(stride) {
        stand.clear();
        let files = Failing::from(at, kind);
        let ended = stand.run_with(1, files, Stop::default()).await;
        let finished = stand.events().contains(&"finished");
        match ended {
            Ok(exit) => assert!(exit == Exit::Finished && finished, "{at}: {exit:?} with a log that is not finished"),
            Err(error) => {
                // A volume without hard links refuses a link in the same way.
                let refused = kind == ErrorKind::PermissionDenied && error.to_string().contains("has no ");
                assert!(refused || error.to_string().contains(says), "{at}: {error}");
                assert!(error.to_string().contains("memory"), "{at}: {error}");
            }
        }
        // The volume is repaired.
        assert_eq!(stand.run(2).await, Exit::Finished);
        stand.assert_sound(&Disk, &undisturbed);
    }
}

#[tokio::test]
async fn temporary_files_of_killed_attempts_are_ignored() {
    let mut stand = Stand::with_twelve_steps().await;
    stand.run(1).await;
    let undisturbed = parse(&stand.lines(&Disk));
    stand.clear();
    let dir = stand.memory().join("jobs/k-1");
    fs::create_dir_all(&dir).unwrap();
    for name in [".tmp-uid-0-1", ".tmp-uid-1-1", ".probe-uid-1", ".probe-uid-1-link", ".tmp-uid-9-77"] {
        fs::write(dir.join(name), "{\"half a li").unwrap();
    }
    fs::write(stand.memory().join("jobs/.tmp-uid-1-k-1.json"), "{").unwrap();
    stand.run(1).await;
    stand.assert_sound(&Disk, &undisturbed);
    assert_eq!(stand.record().outcome.unwrap().code, OutcomeCode::Succeeded);
    let left: Vec<String> = Disk.list(&dir).unwrap().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(left, [".tmp-uid-9-77"], "a file that may belong to another worker stays");
}

#[tokio::test]
async fn a_memory_that_cannot_be_written_is_named_in_the_termination_message() {
    let stand = Stand::with_twelve_steps().await;
    let args = stand.args(1);
    let fault = |kind: ErrorKind| {
        let error = bloomery_journal::Error::from_io("create", &args.memory, kind.into());
        attempt::memory_fault(&attempt::Error::Log(error), &args, "NotWritable: the memory")
    };
    let expected = MemoryFault { job: "uid-j0".into(), attempt: 1, not_writable: "NotWritable: the memory".into() };
    assert_eq!(fault(ErrorKind::PermissionDenied), Some(expected.clone()));
    assert_eq!(fault(ErrorKind::ReadOnlyFilesystem), Some(expected.clone()));
    assert_eq!(fault(ErrorKind::StorageFull), None);
    let long = MemoryFault { not_writable: "\u{1}".repeat(9999), ..expected };
    ending::write_memory_fault(&long, &args.termination_log);
    let text = fs::read_to_string(&args.termination_log).unwrap();
    assert!(text.len() <= MAX_TERMINATION_MESSAGE_BYTES, "{}", text.len());
    assert_eq!(MemoryFault::from_text(&text).unwrap().job, "uid-j0");
}
