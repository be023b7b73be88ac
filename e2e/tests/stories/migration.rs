//! The migration of a memory of the older runtime, with the manifest of the how-to guide.

use std::fs;
use std::os::unix::fs::chown;

use bloomery_e2e::harness::{cluster, command, machine, refund_of, story, until};
use k8s_openapi::api::batch::v1::Job as BatchJob;

/// The user and the group of the worker's image.
const WORKER_USER: u32 = 65532;

#[tokio::test]
async fn the_documented_manifest_moves_the_jobs_of_an_older_memory() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("files in the volume") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        let memory = machine::memory(tenant).await;
        fs::create_dir_all(memory.join("workspace/jobs")).expect("the directory is made");
        let job = r#"{"id": "job_1", "skillSlug": "cs-tier-1", "goal": "x"}"#;
        fs::write(memory.join("workspace/jobs/job_1.json"), job).expect("the job is written");
        fs::write(memory.join("workspace/jobs/job_2.json"), r#"{"id": "job_2"}"#).expect("the job is written");
        // The kubelet gives files to the group of a pod only at the first mount of a local volume. The worker of the Job may
        // still have it mounted.
        for path in ["workspace", "workspace/jobs", "workspace/jobs/job_1.json", "workspace/jobs/job_2.json"] {
            chown(memory.join(path), Some(WORKER_USER), Some(WORKER_USER)).expect("the file gets its owner");
        }

        let path = command::checkout("docs/examples/migrate-memory.yaml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut manifest: BatchJob = serde_yaml::from_str(&text).expect("the manifest is a Job of batch/v1");
        manifest.metadata.namespace = Some(tenant.namespace.clone());
        let pod = manifest.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).expect("it has a pod");
        pod.containers[0].image = Some(cluster::image("worker"));
        tenant.create(manifest).await;
        let has_succeeded = |job: &BatchJob| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
        until(&tenant.api::<BatchJob>(), "migrate-memory", "the migration to succeed", has_succeeded).await;
        let moved =
            |file: &str| fs::read_to_string(memory.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(moved("cs-tier-1/jobs/job_1.json"), job);
        assert!(moved("sw-dev-agent/jobs/job_2.json").contains("job_2"));
        assert!(!memory.join("workspace").exists(), "nothing is left of it");
    })
    .await;
}
