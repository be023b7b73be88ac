//! Invalid input is refused with the reason before anything is written.

use super::setup::{SAYS_HELLO, SKILL, Setup, TIMEOUT};
use rstest::rstest;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

#[rstest]
#[case::alias("a: &a {b: 1}\nc: *a\n", "aliases are not supported")]
#[case::tab("metadata:\n\tname: x\n", "not valid YAML")]
#[case::twice("kind: Skill\nkind: Skill\n", "kind")]
#[case::misspelt(
    "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec: {problem: {statement: y}, polciy: {}}\n",
    "did you mean \"policy\"?"
)]
#[case::dialect("id: x\nproblem: {statement: y}\nmcp_sever: http://x\n", "did you mean \"mcp_server\"?")]
#[case::no_skill("apiVersion: v1\nkind: ConfigMap\n", "the file has no Skill")]
#[case::two("id: a\n---\nid: b\n", "the file has several Skills: select one, such as --skill ./skill.yaml#a")]
#[case::list_of_a_cluster(
    "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec: {problem: {statement: help}, policy: {listsFrom: {payees: \
     {configMapKeyRef: {name: lists, key: payees}}}}}\n",
    "spec.policy.listsFrom.payees: the ConfigMap lists is not in this file"
)]
#[case::engine(
    "id: x\nproblem: {statement: y}\nrole: {persona: \"{{resources.docs}}\"}\nresources: [{name: code, type: filesystem}]\n",
    "resources.docs is not declared"
)]
#[tokio::test]
async fn an_invalid_skill_is_refused_and_nothing_is_written(#[case] text: &str, #[case] says: &str) {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", text);
    let result = setup.run(&["--skill", "./skill.yaml", "--goal", "Greet"]).await;
    assert_eq!(result.code, 2, "{result:#?}");
    assert!(result.err.to_lowercase().contains(&says.to_lowercase()), "{says}: {result:#?}");
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn a_skill_of_ten_mebibytes_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}#{}\n", "x".repeat(10 << 20)));
    setup
        .run(&["--skill", "./skill.yaml", "--goal", "Greet"])
        .await
        .assert(2, "skill.yaml:1:1: error: the input is larger than 1 MiB");
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn arguments_are_checked_before_anything_is_written() {
    let setup = Setup::new(SAYS_HELLO).await;
    let run = async |args: &[&str]| setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], args].concat()).await;
    run(&["--resource", "codebase=."]).await.assert(2, "--resource codebase: the Skill declares no resources");
    run(&["--project-path", "."]).await.assert(2, "--project-path: the Skill declares no resources");
    run(&["--mcp", "foo"]).await.assert(2, "--mcp: `foo` is not an http or https URL");
    let asked = ["run", "--skill", "./skill.yaml", "--goal", "Greet", "--model-url", "nonsense"];
    setup.bloomery(&asked).await.assert(2, "--model-url: `nonsense` is not an http or https URL");
    let asked = setup.command(&asked[..5]).env("OPENAI_BASE_URL", "nonsense").output().await.unwrap();
    super::setup::CommandOutput::new(asked).assert(2, "OPENAI_BASE_URL: `nonsense` is not an http or https URL");
    setup
        .run(&["--skill", "./none.yaml", "--goal", "x"])
        .await
        .assert(2, "--skill: the Skill ./none.yaml cannot be read");
    run(&["--limit", "step=3"]).await.assert(2, "Did you mean \"steps\"?");
    run(&["--limit", "steps=0"]).await.assert(2, "must be more than 0");
    for nothing in ["duration=0s", "duration=-1h"] {
        run(&["--limit", nothing]).await.assert(2, "--limit duration: must be more than 0");
    }
    run(&["--mcp", "http://u:pass@localhost/mcp"]).await.assert(2, "its URL names a user or a password");
    let asked = ["run", "--skill", "./skill.yaml", "--goal", "Greet", "--model-url", "http://u:pass@localhost/v1"];
    setup.bloomery(&asked).await.assert(2, "the URL of the model names a user or a password");
    let proxied = "apiVersion: bloomery.dev/v1alpha1\nkind: Model\nmetadata: {name: default}\nspec: {provider: openai, model: m, \
                   baseUrl: 'https://models.example/v1?api-version=1&subscription_key=abc'}\n";
    setup.write("keyed.yaml", proxied);
    let asked = ["run", "--skill", "./skill.yaml", "--goal", "Greet", "--model", "keyed.yaml"];
    setup.bloomery(&asked).await.assert(2, "must be an http or https URL without user, query or fragment");
    run(&["--api-key-file", "/dev/zero"]).await.assert(2, "/dev/zero cannot be read: it is not a regular file");
    run(&["--mcp", "ftp://x"]).await.assert(2, "is not an http or https URL");
    run(&["--provider", "acme"]).await.assert(2, "--provider must be one of openai");
    run(&["--run-key", "K_1"]).await.assert(2, "must be at most 63 lower-case letters");
    setup.run(&["--skill", "./skill.yaml", "--goal", " "]).await.assert(2, "--goal must not be empty");
    setup.run(&["--skill", "sw-dev-agnet", "--goal", "x"]).await.assert(2, "Did you mean \"sw-dev-agent\"?");
    setup
        .run(&["--goal", "x"])
        .await
        .assert(2, "codebase: the Skill requires this filesystem: add --resource codebase=PATH");
    // A minimal Skill is not created if the run is refused.
    let none = setup.command(&["run", "--skill", "own", "--bootstrap", "--goal", "x"]).output().await.unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8(none.stderr).unwrap().contains("no model is configured: set OPENAI_API_KEY"));
    let keyed = ["run", "--skill", "./skill.yaml", "--goal", "x", "--model", "gpt-5-mini"];
    let keyless = setup.command(&keyed).output().await.unwrap();
    assert!(String::from_utf8(keyless.stderr).unwrap().contains("requires a key: set OPENAI_API_KEY"));
    let broken = setup.command(&keyed).env("OPENAI_API_KEY", "sk-1\nsk-2").output().await.unwrap();
    let stderr = String::from_utf8(broken.stderr).unwrap();
    assert!(
        broken.status.code() == Some(2)
            && stderr.contains("OPENAI_API_KEY holds a line break")
            && !stderr.contains("sk-"),
        "{stderr}"
    );
    assert!(!setup.path("memory").exists(), "a refused run writes nothing");
}

/// The parameters of a Job are stored, so that it can be resumed.
#[rstest]
#[case::token(&["--mcp", "http://127.0.0.1:9/mcp?token=hunter22"], "--mcp: its URL has the parameter `token`, which is a credential by its name")]
#[case::fragment(&["--mcp", "http://127.0.0.1:9/mcp?a=b#access_token=hunter22"], "`access_token`")]
#[case::signed(&["--mcp", "http://127.0.0.1:9/mcp?x=1&X-Amz-Signature=hunter22"], "use a program as a proxy")]
#[case::joined(&["--mcp-command", "sh", "--api-key=hunter22"], "--mcp-command: the argument `--api-key` passes a credential")]
#[case::apart(&["--mcp-command", "sh", "--token", "hunter22"], "name the variable with --mcp-env")]
#[case::variable(&["--mcp-command", "sh", "-e", "GITHUB_TOKEN=hunter22"], "`GITHUB_TOKEN`")]
#[case::header(&["--mcp-command", "sh", "--header", "Authorization: Bearer hunter22"], "`Authorization`")]
#[case::password(&["--mcp-command", "sh", "postgres://me:hunter22@db/orders"], "--mcp-command: the argument 2 names a user or a password")]
#[case::in_a_url(&["--mcp-command", "sh", "--url=https://h/mcp?key=hunter22"], "--mcp-command: the argument 2 has the parameter `key`")]
#[tokio::test]
async fn a_credential_that_would_be_stored_in_clear_text_is_refused(#[case] mcp: &[&str], #[case] says: &str) {
    let setup = Setup::new(SAYS_HELLO).await;
    let result = setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], mcp].concat()).await;
    result.assert(2, says);
    assert!(!result.err.contains("hunter22"), "{result:#?}");
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn a_credential_in_the_url_of_an_api_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}  resources: [{{name: api, type: api_endpoint}}]\n"));
    let bound = ["--resource", "api=http://127.0.0.1:9/v1?api_key=hunter22"];
    let result = setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], &bound[..]].concat()).await;
    result.assert(2, "api: the URL has the parameter `api_key`, which is a credential by its name");
    assert!(!result.err.contains("hunter22") && !setup.path("memory").exists(), "{result:#?}");
}

#[tokio::test]
async fn a_limit_above_that_of_the_skill_gets_a_warning() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}  engine: {{limits: {{steps: 5, duration: 10m}}}}\n"));
    let limits =
        ["--limit", "steps=6", "--limit", "duration=1h", "--limit", "tokens=100000", "--limit", "toolCalls=101"];
    let result = setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], &limits[..]].concat()).await;
    result.assert(0, "--limit steps=6: the Skill's limit of 5 applies");
    result.assert(0, "--limit duration=3600s: the Skill's limit of 600s applies");
    result.assert(0, "--limit toolCalls=101: the Skill's limit of 100 applies");
    assert!(!result.err.contains("tokens=100000"), "{result:#?}");
}

#[tokio::test]
async fn a_named_pipe_is_refused_and_an_inherited_pipe_is_read() {
    let setup = Setup::new(SAYS_HELLO).await;
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(setup.path(name)).status().unwrap();
        assert!(made.success(), "{name}");
    };
    pipe("pipe.yaml");
    fs::create_dir_all(setup.path("memory/piped/jobs")).unwrap();
    pipe("memory/piped/skill.yaml");
    for skill in ["pipe.yaml", "piped"] {
        let result = tokio::time::timeout(TIMEOUT, setup.run(&["--skill", skill, "--goal", "x"])).await.expect(skill);
        result.assert(2, "cannot be read: it is not a regular file");
    }
    setup.write("skill.yaml", &format!("{SKILL}  resources: [{{name: docs, type: filesystem}}]\n"));
    let bound = ["--skill", "./skill.yaml", "--goal", "x", "--resource", "docs=pipe.yaml"];
    let result = tokio::time::timeout(TIMEOUT, setup.run(&bound)).await.expect("a resource");
    result.assert(2, "docs: the path pipe.yaml cannot be used: it is not a regular file");
    // An inherited pipe is read.
    let mut piped = setup.run_command(&["--skill", "/dev/stdin", "--goal", "x"]).stdin(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(SKILL.as_bytes()).await.unwrap();
    super::setup::CommandOutput::new(piped.wait_with_output().await.unwrap()).assert(0, "Succeeded");
}

#[tokio::test]
async fn a_secret_that_is_too_large_is_refused_before_anything_is_written() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}  resources: [{{name: tok, type: credential}}]\n"));
    setup.write("large", &"x".repeat(16 * 1024 + 1));
    let run = async |args: &[&str]| setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], args].concat()).await;
    run(&["--resource", "tok=@large"]).await.assert(2, "--resource tok: the file large has more than 16384 bytes");
    run(&["--resource", "tok=@/dev/zero"]).await.assert(2, "tok: the file /dev/zero cannot be read");
    run(&["--api-key-file", "large"]).await.assert(2, "--api-key-file: the file large has more than 16384 bytes");
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn all_errors_are_reported_at_once() {
    let setup = Setup::new(SAYS_HELLO).await;
    let all = ["--model", "/nonexist.yaml", "--limit", "step=3", "--limit", "steps=0", "--resource", "docs=."];
    let more = ["--limit", "duration=10", "--api-key-file", "/no/such/key", "--mcp-command", "/no/such/program"];
    let result = setup.bloomery(&[&["run", "--goal", " "], &all[..], &more].concat()).await;
    for says in [
        "--goal must not be empty",
        "--model /nonexist.yaml cannot be read",
        "--limit step: there is no such limit",
        "--limit steps: must be more than 0",
        "--limit duration=10: it has no unit: write 10s",
        "--api-key-file: the file /no/such/key cannot be read",
        "--resource docs: the Skill",
        "codebase: the Skill requires this filesystem",
        "--mcp-command /no/such/program",
    ] {
        result.assert(2, says);
    }
    for line in result.err.lines().filter(|line| !line.starts_with(' ')) {
        assert!(line.starts_with("bloomery: "), "{line}");
    }
    // If the Skill is invalid, the other arguments are checked too.
    setup.write("skill.yaml", "kind: Skill\n");
    setup.write("models.yaml", "kind: ConfigMap\napiVersion: v1\n");
    let result = setup.bloomery(&["run", "--skill", "./skill.yaml", "--goal", "x", "--model", "models.yaml"]).await;
    result.assert(2, "models.yaml has no Model");
    result.assert(2, "nothing was run");
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn one_of_several_skills_in_a_file_is_selected() {
    let setup = Setup::new(SAYS_HELLO).await;
    let other = SKILL.replace("greeter", "other");
    let several = format!("apiVersion: v1\nkind: ConfigMap\n---\n{SKILL}---\n{other}---\nkind: Skill\n");
    setup.write("skills.yaml", &several);
    let run = async |skill: &str| setup.run(&["--skill", skill, "--goal", "Greet"]).await;
    run("skills.yaml").await.assert(2, "select one, such as --skill skills.yaml#greeter. It has greeter, other");
    run("skills.yaml#others").await.assert(2, "Did you mean \"other\"?");
    assert!(!setup.path("memory").exists());
    run("skills.yaml#other").await.assert(0, "of the Skill other, in memory/other/jobs/");
    // In a skill directory, the Skill with the name of the directory is used.
    run("other").await.assert(0, "of the Skill other, in memory/other/jobs/");
    assert_eq!(setup.read("memory/other/skill.yaml"), several);
    run("./skill.yaml#greeter").await.assert(0, "of the Skill greeter");
    run("./skill.yaml#other").await.assert(2, "the file has no Skill \"other\"");
    setup.write("a#b.yaml", SKILL);
    run("./a#b.yaml").await.assert(0, "of the Skill greeter");
    setup.write("skills.yaml", &format!("{SKILL}---\n{SKILL}"));
    run("skills.yaml#greeter").await.assert(2, "the file has more than one Skill \"greeter\"");
}

#[rstest]
#[case("http://169.254.169.254/latest", "a link-local, metadata or reserved address")]
#[case("http://[fe80::1]/mcp", "a link-local, metadata or reserved address")]
#[case("http://[::ffff:169.254.169.254]/mcp", "a link-local, metadata or reserved address")]
#[case("http://100.100.100.200/mcp", "a link-local, metadata or reserved address")]
#[tokio::test]
async fn addresses_of_cloud_metadata_are_refused(#[case] url: &str, #[case] says: &str) {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}  resources: [{{name: api, type: api_endpoint}}]\n"));
    setup.write("dialect.yaml", &format!("id: dialect\nproblem: {{statement: y}}\nmcp_server: {url}\n"));
    let run = async |args: &[&str]| setup.run(&[&["--goal", "Greet"], args].concat()).await;
    let result = run(&["--skill", "./skill.yaml", "--mcp", url, "--resource", &format!("api={url}")]).await;
    result.assert(2, says);
    assert_eq!(result.err.matches(says).count(), 2, "{result:#?}");
    run(&["--skill", "./dialect.yaml"]).await.assert(2, says);
    assert!(!setup.path("memory").exists());
}

#[tokio::test]
async fn a_skill_in_the_directory_of_another_skill_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("memory/other/skill.yaml", SKILL);
    setup.run(&["--skill", "other", "--goal", "x"]).await.assert(2, "give both the same name");
}

#[tokio::test]
async fn bootstrap_creates_a_minimal_skill() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.run(&["--skill", "own", "--goal", "x"]).await.assert(2, "--bootstrap creates a minimal Skill");
    setup.run(&["--skill", "own", "--goal", "x", "--bootstrap"]).await.assert(0, "Succeeded");
    assert!(setup.read("memory/own/skill.yaml").contains("Do the work of own"));
}

#[tokio::test]
async fn a_memory_that_is_not_a_directory_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    let run = async |memory: &str| setup.run(&["--skill", "./skill.yaml", "--goal", "x", "--memory", memory]).await;
    setup.write("file", "");
    run("file").await.assert(2, "the memory ./file/greeter cannot be used: File exists");
    run("file").await.assert(2, "Name another one with --memory");
    run("/proc/self/memory-of-a-tenant").await.assert(2, "the memory");
}

/// Runs as another user, because root has access to everything.
#[tokio::test]
async fn a_memory_of_another_tenant_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    // The other user must be able to read the directory.
    let shared = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let open = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(shared.path(), 0o755);
    let program = shared.path().join("bloomery");
    fs::copy(env!("CARGO_BIN_EXE_bloomery"), &program).unwrap();
    open(&program, 0o755);
    fs::write(shared.path().join("skill.yaml"), SKILL).unwrap();
    fs::create_dir(shared.path().join("memory")).unwrap();
    open(&shared.path().join("memory"), 0o555);
    let url = setup.url();
    let is_root = fs::metadata("/proc/self").map(|of| std::os::unix::fs::MetadataExt::uid(&of)).unwrap() == 0;
    let run = || {
        let mut command = std::process::Command::new(&program);
        let run = ["run", "--skill", "./skill.yaml", "--goal", "x", "--run-key", "k-1", "--model-url", &url];
        command.args(run).current_dir(shared.path());
        if is_root {
            command.uid(65534).gid(65534);
        }
        let result = super::setup::CommandOutput::new(command.output().unwrap());
        result.assert(2, "another tenant's");
        assert!(result.err.contains("belongs to user "), "{result:#?}");
    };
    run();
    if is_root {
        // A memory to which everybody can write is refused too.
        open(&shared.path().join("memory"), 0o777);
        run();
        assert_eq!(fs::read_dir(shared.path().join("memory")).unwrap().count(), 0);
        // A Job of the same key in it is not read.
        let kept = shared.path().join("memory/greeter/jobs/k-1/run.json");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, "no document").unwrap();
        open(&kept, 0o600);
        open(&shared.path().join("memory"), 0o700);
        run();
        fs::remove_dir_all(shared.path().join("memory/greeter")).unwrap();
        // One directory of another user in the memory is enough.
        let skill = shared.path().join("memory/greeter");
        fs::create_dir(&skill).unwrap();
        for own in [&shared.path().join("memory"), &skill] {
            std::os::unix::fs::chown(own, Some(65534), Some(65534)).unwrap();
        }
        for used in ["jobs", "logs", "focus-cache", "cache", "memory-bank"] {
            let dir = skill.join(used);
            fs::create_dir(&dir).unwrap();
            open(&dir, 0o777);
            run();
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "{used}");
            fs::remove_dir(&dir).unwrap();
        }
    }
}
