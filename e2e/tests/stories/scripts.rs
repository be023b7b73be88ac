//! The scripts of a Skill, which run in a container of their own beside the worker.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::pod::SCRIPTS_CONTAINER;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_e2e::harness::cluster::image;
use bloomery_e2e::harness::{Turn, call, conversation, story, typed};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

/// Finds an order, with only the commands of the shell itself. Says which files of the worker it sees.
const CHECK: &str = r#"# Finds an order.
seen=
for path in /var/run/bloomery /var/run/secrets /etc/bloomery /memory /bloomery-scripts/revision.json; do
  if [ -e "$path" ]; then seen="$seen $path"; fi
done
if [ "$1" != A-17 ]; then echo "there is no order $1" >&2; exit 3; fi
read -r input
read -r note </resources/codebase/note.txt
echo "order $1 for $input: $note; files of the worker:${seen:- none}"
"#;

fn with_scripts(spec: &mut SkillSpec) {
    let filesystem = json!([{"name": "codebase", "type": "filesystem", "required": true}]);
    spec.resources = serde_json::from_value(filesystem).expect("resources");
    let scripts = json!({"image": image("e2e-shell"), "configMap": "checks", "timeout": "20s"});
    spec.scripts = serde_json::from_value(scripts).expect("scripts");
}

#[tokio::test]
async fn a_job_runs_scripts_which_see_its_files_and_nothing_of_the_worker() {
    let turns = [
        call("write_file", json!({"path": "note.txt", "content": "left by the worker"})),
        call("script_check", json!({"args": ["A-17"], "stdin": 7})),
        call("script_check", json!({"args": ["B-1; exit 0"]}))
            .after_result("order A-17 for 7: left by the worker; files of the worker: none"),
        // The Skill also has an MCP server.
        call("track_order", json!({"order_id": "A-17"})).after_result("\"exitCode\":3"),
        Turn::answer("A-17"),
    ];
    story(async |tenant| {
        tenant.claim("src").await;
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        let skill = tenant.skill("cs-tier-1").with(with_scripts).await;
        skill.until_reason(ConditionType::Accepted, "ScriptsNotFound", &["spec.scripts.configMap", "checks"]).await;
        let checks: ConfigMap = typed(json!({"metadata": {"name": "checks"}, "data": {"check.sh": CHECK}}));
        tenant.create(checks).await;
        skill.ready().await;

        let source = json!({"persistentVolumeClaim": {"claimName": "src", "readOnly": false}});
        let job = tenant.job("check").binding("codebase", source).await;
        job.succeeded().await;
        job.pods_have_ended().await;
        let pods = job.pods().await;
        let containers = pods.iter().flat_map(|pod| pod.spec.iter().flat_map(|spec| &spec.init_containers).flatten());
        let names: Vec<&str> = containers.map(|container| container.name.as_str()).collect();
        assert_eq!(names, ["bridge", SCRIPTS_CONTAINER]);
        shop.model.assert_no_violations().await;
    })
    .await;
}
