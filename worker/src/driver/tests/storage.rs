//! Volumes that fail under a run: each has a clear end, and a sentence that says what to do.

use super::*;
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
async fn a_volume_that_fails_ends_the_epoch_says_what_to_do_and_costs_nothing_twice(
    #[case] kind: ErrorKind,
    #[case] says: &str,
) {
    let mut stand = Stand::of_twelve_steps().await;
    stand.run(1).await;
    let undisturbed = parse(&stand.lines(&Disk));
    let operations = {
        stand.clear();
        let files = Failing::never();
        stand.run_with(1, files.clone(), Stop::default()).await.unwrap();
        files.writes()
    };
    // The first of these tells all that a full disk does; how others are named is seen as well at some of them.
    let stride = if kind == ErrorKind::StorageFull { 1 } else { 7 };
    for at in (0..operations).step_by(stride) {
        stand.clear();
        let files = Failing::from(at, kind);
        let ended = stand.run_with(1, files, Stop::default()).await;
        let finished = stand.events().contains(&"finished");
        match ended {
            Ok(exit) => assert!(exit == Exit::Finished && finished, "{at}: {exit:?} with a log that is not finished"),
            Err(error) => {
                // Refused links are what a volume without them says.
                let refused = kind == ErrorKind::PermissionDenied && error.to_string().contains("has no ");
                assert!(refused || error.to_string().contains(says), "{at}: {error}");
                assert!(error.to_string().contains("memory"), "{at}: {error}");
            }
        }
        // Somebody has mended it.
        assert_eq!(stand.run(2).await, Exit::Finished);
        stand.assert_sound(&Disk, &undisturbed);
    }
}

#[tokio::test]
async fn temporary_files_of_dead_attempts_are_no_part_of_the_log() {
    let mut stand = Stand::of_twelve_steps().await;
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
    assert_eq!(left, [".tmp-uid-9-77"], "what may be another's stays");
}
