//! Logs of ended runs that exceed the bounds of the installation.

use super::*;
use bloomery_crds::report::MemorySurvey;

/// Copies the log and the record of the stand's Job to another run key.
fn copy_run(stand: &Stand, key: &str) {
    let jobs = stand.memory().join("jobs");
    fs::create_dir(jobs.join(key)).unwrap();
    for entry in fs::read_dir(jobs.join("k-1")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), jobs.join(key).join(entry.file_name())).unwrap();
    }
    fs::copy(jobs.join("k-1.json"), jobs.join(format!("{key}.json"))).unwrap();
}

fn surveys(stand: &Stand) -> Vec<MemorySurvey> {
    stand.reports().into_iter().filter_map(|received| received.report.memory).collect()
}

#[tokio::test]
async fn a_log_that_no_job_needs_is_pruned_and_its_record_stays() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    for key in ["needed", "unneeded", "unreadable"] {
        copy_run(&stand, key);
    }
    let jobs = stand.memory().join("jobs");
    fs::write(jobs.join("unreadable.json"), "{").unwrap();
    fs::create_dir(jobs.join("unfinished")).unwrap();
    fs::create_dir(jobs.join(".pruned-interrupted")).unwrap();
    stand.log_max_count = 0;
    let unneeded = ["unneeded", "unreadable", "k-1", "unfinished", "../jobs"].map(str::to_owned);
    *stand.operator.unneeded.lock().unwrap() = unneeded.to_vec();
    assert_eq!(stand.run(2).await, Exit::Finished);
    let mut left: Vec<String> = Disk.list(&jobs).unwrap();
    left.sort();
    let expected =
        ["k-1", "k-1.json", "needed", "needed.json", "unfinished", "unneeded.json", "unreadable", "unreadable.json"];
    assert_eq!(left, expected);
    let survey = surveys(&stand).pop().unwrap();
    let mut prunable = survey.prunable.clone();
    prunable.sort();
    assert_eq!(prunable, ["needed", "unneeded", "unreadable"]);
    let of_jobs = survey.directories.iter().find(|directory| directory.name == "jobs").unwrap();
    assert!(of_jobs.bytes > 0 && survey.bytes >= of_jobs.bytes, "{survey:?}");
}

#[tokio::test]
async fn each_worker_reports_the_size_of_the_memory_once() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let surveys = surveys(&stand);
    assert_eq!(surveys.len(), 1, "{surveys:?}");
    assert_eq!(surveys[0].prunable, [""; 0]);
}
