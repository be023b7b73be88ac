//! Tools of MCP servers, which are programs or have an address.

use super::setup::{SKILL, Setup};
use bloomery_testkit::orders;

/// A shell script that is an MCP server. It lists the tools in `$2`, by default `act`, and runs the command `$1` for each call.
pub const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
tools=$2
[ -n "$tools" ] || tools='{"name":"act","description":"Acts","inputSchema":{"type":"object"}}'
echo "the server speaks: $SECRET$NAMED" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer "{\"tools\":[$tools]}" ;;
    *'"method":"tools/call"'*) eval "$1" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
  esac
done
"#;

/// A shell command that answers a call.
pub const ANSWERS: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

/// A shell command that answers a call with a text of 70,004 bytes. That is more than the smallest limit of a Skill.
const ANSWERS_AT_LENGTH: &str =
    r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"done$(printf '%70000s' x)\"}]}""#;

const CALLS: &str = "
conversations:
  - name: acts
    turns: [{calls: [{name: act}]}, {expect: {lastToolResultContains: done}, say: Done.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Act", "--run-key", "k-1"];

#[tokio::test]
async fn a_server_program_gets_only_named_variables() {
    let setup = Setup::new(CALLS).await;
    let act = format!("echo \"$SECRET$NAMED\" >seen; {ANSWERS}");
    let mcp = ["--mcp-env", "NAMED", "--mcp-command", "sh", "-c", SERVER, "sh", &act];
    let result = setup
        .run_command(&[&RUN[..], &mcp].concat())
        .env("SECRET", "sk-1")
        .env("NAMED", "named")
        .output()
        .await
        .unwrap();
    let result = super::setup::CommandOutput::new(result);
    assert_eq!(setup.read("seen"), "named\n");
    assert!(!result.err.contains("the server speaks"), "nothing failed: {result:#?}");
    let says = "--mcp-env NAMED: the secret has fewer than 8 bytes. It is too short to be redacted from the log";
    result.assert(0, says);
    assert_eq!(result.err.matches("fewer than 8 bytes").count(), 1, "{result:#?}");
    assert_eq!(result.out, "Done.\n");
}

/// Variables usually contain credentials. Without one, the program would fail later.
#[tokio::test]
async fn a_variable_that_cannot_be_passed_is_refused_without_its_value() {
    let setup = Setup::new(super::resume::HOLDS).await;
    let run = |names: [&str; 2]| {
        let mcp = ["--mcp-env", names[0], "--mcp-env", names[1], "--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
        let mut command = setup.run_command(&[&RUN[..], &mcp].concat());
        command.env("NAMED", "named").env("LARGE", "x".repeat(16 * 1024 + 1));
        command
    };
    let result = super::setup::CommandOutput::new(run(["TOKEN=tok-of-the-shop-4711", "NOPE"]).output().await.unwrap());
    result.assert(2, "--mcp-env TOKEN=...: give the name of a variable without a value");
    result.assert(2, "--mcp-env NOPE: the environment has no such variable");
    assert!(!result.err.contains("of-the-shop"), "{result:#?}");
    let result = super::setup::CommandOutput::new(run(["NAMED", "LARGE"]).output().await.unwrap());
    result.assert(2, "--mcp-env LARGE: its value has more than 16384 bytes");
    assert!(!setup.path("memory").exists());

    let begun = run(["NAMED", "NAMED"]).spawn().unwrap();
    setup.wait_for_held(1).await;
    super::resume::interrupt(&begun);
    super::resume::ended(begun).await.assert(7, "Parked");
    setup.run(&["--resume", "k-1"]).await.assert(2, "--mcp-env NAMED: the environment has no such variable");
}

/// The value of a passed variable is redacted, even if a model or a tool repeats it.
#[tokio::test]
async fn variables_of_a_program_are_redacted_everywhere() {
    let script = "
conversations:
  - name: acts
    turns:
      - {calls: [{name: act}]}
      - {expect: {lastToolResultContains: 'it is [redacted: NAMED]'}, say: It is tok-of-the-shop-4711.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: It is tok-of-the-shop-4711.}]
";
    let reveals = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"it is $NAMED\"}]}""#;
    for json in [&[][..], &["--json"]] {
        let setup = Setup::new(script).await;
        let more = ["--mcp-env", "NAMED", "--mcp-env", "PATH", "--mcp-command", "sh", "-c", SERVER, "sh", reveals];
        let goal = ["--skill", "./skill.yaml", "--goal", "Act with tok-of-the-shop-4711", "--run-key", "k-1"];
        let mut command = setup.run_command(&[&goal[..], json, &more].concat());
        let result =
            super::setup::CommandOutput::new(command.env("NAMED", "tok-of-the-shop-4711").output().await.unwrap());
        result.assert(0, "It is [redacted: NAMED].");
        let all = setup.all_contents() + &result.out + &result.err;
        assert!(!all.contains("of-the-shop"), "{all}");
        assert!(setup.read("memory/greeter/jobs/k-1/run.json").contains("Act with [redacted: NAMED]"));
        assert!(setup.read("memory/greeter/logs/k-1.log").contains("[redacted: NAMED]"));
        setup.assert_no_violations().await;
    }
}

/// An MCP server gets no secret that a Job binds.
#[tokio::test]
async fn an_unused_secret_gets_a_warning() {
    let setup = Setup::new(CALLS).await;
    let resources = "  resources: [{name: database, type: connection_string}]\n";
    setup.write("skill.yaml", &format!("{SKILL}{resources}"));
    setup.write("dbf", "postgres://me:hunter22@db/orders\n");
    let more = ["--resource", "database=@dbf", "--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    let result = setup.run(&[&RUN[..], &more].concat()).await;
    result.assert(0, "database: this connection_string is redacted but not used");
    result.assert(0, "To pass a secret to a program, use --mcp-env");
    assert!(!result.err.contains("fewer than"), "{result:#?}");
    setup.write("dbf", " abc\n");
    setup.write("key", "k-9\n");
    let again = ["--api-key-file", "key", "--run-key", "k-2"];
    let result = setup.run(&[&RUN[..4], &again, &more].concat()).await;
    result.assert(0, "database: the secret has fewer than 8 bytes");
    result.assert(0, "the key of the model default: the secret has fewer than 8 bytes");
    assert!(!result.err.contains("abc") && !result.err.contains("k-9"), "{result:#?}");
}

/// The model is not asked, and the server is not called.
#[tokio::test]
async fn a_rule_that_matches_no_tool_of_the_server_ends_the_job_before_it_begins() {
    let setup = Setup::new("conversations: []").await;
    let mcp = ["--mcp-command", "sh", "-c", SERVER, "sh", "echo x >acted; exit 1"];
    let with_policy = |policy: &str| setup.write("skill.yaml", &format!("{SKILL}  policy: {policy}\n"));
    with_policy("{approvals: [{toolId: akt}]}");
    let result = setup.run(&[&RUN[..], &mcp].concat()).await;
    assert_ne!(result.code, 0, "{result:#?}");
    result.assert(result.code, "PolicyInvalid");
    result.assert(result.code, "spec.policy.approvals[0].toolId: no tool of the MCP server matches \"akt\"");
    assert!(!setup.path("acted").exists());
    setup.assert_no_violations().await;
}

/// Only the tools of the server show that the source of the value is not read-only.
#[tokio::test]
async fn the_findings_of_the_lint_are_counted_with_the_tools_of_the_server() {
    let setup = Setup::new(CALLS).await;
    let tools = r#"{"name":"find","inputSchema":{"type":"object"}},{"name":"act","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}"#;
    let rule = "{toolId: act, when: \"has(args.id) && !fromTool(id, 'find')\"}";
    setup.write("skill.yaml", &format!("{SKILL}  policy: {{approvals: [{rule}]}}\n"));
    let result = setup.run(&[&RUN[..], &["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS, tools]].concat()).await;
    result.assert(0, "./skill.yaml: 1 warning: run `bloomery lint --tools` for details");
}

#[tokio::test]
async fn a_call_without_a_response_is_not_repeated() {
    let setup = Setup::new(CALLS).await;
    let mcp = ["--mcp-command", "sh", "-c", SERVER, "sh", "echo x >>acted; exit 1"];
    setup.run(&[&RUN[..], &mcp].concat()).await.assert(5, "ToolIndeterminate");
    setup.run(&["--resume", "k-1"]).await.assert(5, "ToolIndeterminate");
    assert_eq!(setup.read("acted"), "x\n");
}

/// The call is completed in both cases, because it has happened.
#[tokio::test]
async fn the_skill_limits_the_size_of_a_result() {
    let act = format!("echo x >>acted; {ANSWERS_AT_LENGTH}");
    let mcp = ["--mcp-command", "sh", "-c", SERVER, "sh", &act];
    for (engine, expected) in [
        ("{maxResultBytes: 65536}", "'[The call has happened: the server answered it. But the answer has'"),
        ("{}", "'[Excerpt of a result of 70004 bytes'"),
    ] {
        let setup = Setup::new(&CALLS.replace("done", expected)).await;
        setup.write("skill.yaml", &format!("{SKILL}  engine: {engine}\n"));
        setup.run(&[&RUN[..], &mcp].concat()).await.assert(0, "Succeeded");
        assert_eq!(setup.read("acted"), "x\n");
        setup.assert_no_violations().await;
    }
}

#[tokio::test]
async fn the_address_of_a_server_comes_from_the_command_line_or_the_skill() {
    let script = "
conversations:
  - name: looks
    turns: [{expect: {toolsOffered: [track_order]}, say: Done.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let setup = Setup::new(script).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    setup.run(&[&RUN[..4], &["--mcp", &url]].concat()).await.assert(0, "Succeeded");
    setup.write("dialect.yaml", &format!("id: dialect\nmcp_server: {url}\n"));
    setup.run(&["--skill", "./dialect.yaml", "--goal", "Look"]).await.assert(0, "Succeeded");
    setup.write("skill.yaml", &format!("{SKILL}  mcpServer: {{service: {{name: orders, port: 80, path: /mcp}}}}\n"));
    setup.run(&RUN[..4]).await.assert(2, "name another one with --mcp URL or --mcp-command PROGRAM");
    setup.run(&[&RUN[..4], &["--mcp", &url]].concat()).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn a_tool_of_a_server_at_an_address_is_called() {
    let script = "
conversations:
  - name: looks
    turns:
      - calls: [{name: check_eligibility, arguments: {order_id: B-4}}]
      - {expect: {lastToolResultContains: the return window is over}, say: It is too late.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: It is too late.}]
";
    let setup = Setup::new(script).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    let result = setup.run(&["--skill", "cs-tier-1", "--goal", "Refund B-4", "--mcp", &url]).await;
    assert_eq!((result.code, result.out.as_str()), (0, "It is too late.\n"), "{result:#?}");
}

#[tokio::test]
async fn an_unreachable_server_ends_the_job() {
    let setup = Setup::new(CALLS).await;
    let absent = ["run", "--model-url", "http://127.0.0.1:9/v1", "--mcp", "http://127.0.0.1:9/mcp", "--patience", "0"];
    let result = setup.bloomery(&[&absent[..], &RUN[..4]].concat()).await;
    result.assert(3, "McpUnavailable");
    result.assert(3, "The worker waited 0 s for it.");
}

#[tokio::test]
async fn the_progress_of_a_call_is_printed_while_it_runs() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let setup = Setup::new(CALLS).await;
    setup.write("server.sh", SERVER);
    setup.write("progress.sh", super::terminal::REPORTS_PROGRESS);
    let mcp = ["--json", "--mcp-command", "sh", "server.sh", ". ./progress.sh"];
    let mut run = setup.start(&[&RUN[..], &mcp].concat());
    setup.wait_for_file("memory/greeter/jobs/k-1/00000000000000000001.jsonl").await;
    let mut follow = setup.command(&["events", "--follow", "k-1"]).spawn().unwrap();
    let mut outputs = [&mut run, &mut follow].map(|process| BufReader::new(process.stdout.take().unwrap()));
    // The call continues only after both outputs show its progress.
    for reader in &mut outputs {
        let mut line = String::new();
        while !(line.contains("tool.progressed") && line.contains("picking")) {
            line.clear();
            assert_ne!(reader.read_line(&mut line).await.unwrap(), 0, "the output ends without it");
        }
    }
    setup.write("go", "");
    drop(outputs);
    assert_eq!(run.wait().await.unwrap().code(), Some(0));
    follow.wait().await.unwrap();
}

/// Only another command line can correct these errors, so retries are useless.
#[tokio::test]
async fn a_redirect_or_a_missing_credential_is_not_retried() {
    use axum::http::{StatusCode, header::LOCATION};
    let setup = Setup::new(CALLS).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let moved = || async { (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/mcp/")]) };
    let locked = || async { (StatusCode::UNAUTHORIZED, "no token") };
    let router = axum::Router::new().route("/mcp", axum::routing::any(moved)).fallback(locked);
    tokio::spawn(async move { axum::serve(listener, router).await });
    for (url, says) in [
        (format!("{at}/mcp"), format!("it redirects to {at}/mcp/ (HTTP 307), and redirects are not followed")),
        (format!("{at}/locked"), "it answered HTTP 401: no token.".to_owned()),
    ] {
        let mut command = setup.command(&["run", "--model-url", "http://127.0.0.1:9/v1", "--patience", "600"]);
        let result = command.args(RUN[..4].iter().copied().chain(["--mcp", &url])).output();
        let result = tokio::time::timeout(super::setup::TIMEOUT, result).await.expect(&says);
        let result = super::setup::CommandOutput::new(result.unwrap());
        result.assert(3, "McpUnavailable: T");
        assert!(result.err.contains(&says) && !result.err.contains("The worker waited"), "{says}: {result:#?}");
    }
}

#[tokio::test]
async fn an_invalid_tool_is_reported_and_the_others_are_used() {
    let setup = Setup::new(CALLS).await;
    let tools = r#"{"name":"act","inputSchema":{"type":"object"}},{"name":"bare"},{"name":"yes","inputSchema":true}"#;
    let large =
        format!(r#"{{"name":"large","inputSchema":{{"type":"object"}},"description":"{}"}}"#, "x".repeat(66_000));
    setup.write("tools", &format!("{tools},{large}"));
    let server = format!("tools=$(cat tools)\n{}", SERVER.replace("tools=$2\n", ""));
    let result = setup.run(&[&RUN[..], &["--mcp-command", "sh", "-c", &server, "sh", ANSWERS]].concat()).await;
    for says in [
        "the MCP server lists the tool \"bare\", which is ignored: it has no inputSchema",
        "the MCP server lists the tool \"yes\", which is ignored: its inputSchema is not an object",
        "the MCP server lists the tool \"large\", which is ignored: its definition has 66022 bytes, and the limit is 65536",
    ] {
        result.assert(0, says);
    }
    assert_eq!(result.out, "Done.\n");
}

/// A program that ends during its start is reported at once, even with a long patience.
#[tokio::test]
async fn a_program_that_ends_at_once_is_not_retried() {
    let setup = Setup::new(CALLS).await;
    setup.write("binary", "\u{7f}ELF, but no more");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.path("binary"), may_run).unwrap();
    let ends = ["sh", "-c", "echo starting >&2; echo no KEY is set >&2; exit 3"];
    let lines =
        |result: &super::setup::CommandOutput| result.err.lines().filter(|line| *line == "no KEY is set").count();
    for (program, says) in [
        (&ends[..], "the tools of the MCP server `sh` cannot be listed: the program ended (exit status: 3). Repair"),
        (
            &["./binary"],
            "the tools of the MCP server `./binary` cannot be listed: it cannot be started: Exec format error",
        ),
    ] {
        let args =
            [&["--skill", "./skill.yaml", "--goal", "Act", "--patience", "600", "--mcp-command"], program].concat();
        let mut command = setup.command(&["run", "--model-url", "http://127.0.0.1:9/v1"]);
        let result = tokio::time::timeout(super::setup::TIMEOUT, command.args(args).output()).await.expect(says);
        let result = super::setup::CommandOutput::new(result.unwrap());
        result.assert(3, "McpUnavailable: T");
        let remedy = "correct its command, then start the Job again. The MCP server is the program of --mcp-command.";
        assert!(result.err.contains(remedy) && !result.err.contains("address"), "{result:#?}");
        assert!(result.err.contains(&says[1..]), "{says}: {result:#?}");
        // The standard error of a program is shown when something fails, and not repeated.
        assert_eq!(lines(&result), usize::from(program == ends), "{result:#?}");
        assert_eq!(result.err.matches("no KEY").count(), lines(&result), "{result:#?}");
    }
}

#[tokio::test]
async fn a_reached_limit_names_the_option_that_lowered_it() {
    let setup = Setup::new(CALLS).await;
    let server = ["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    let result = setup.run(&[&RUN[..], &["--limit", "steps=1"], &server].concat()).await;
    result.assert(3, "Raise --limit steps, or ask for less in one Job.");
    assert!(!result.err.contains("in the Skill"), "{result:#?}");
    setup.write("skill.yaml", &format!("{SKILL}  engine: {{limits: {{steps: 1}}}}\n"));
    let run = ["--skill", "./skill.yaml", "--goal", "Act", "--memory", "other"];
    setup.run(&[&run[..], &server].concat()).await.assert(3, "Raise it in the Skill");
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_refused() {
    let setup = Setup::new(CALLS).await;
    setup.write("plain", "");
    setup.write("script", "#!/no/such/interpreter\n");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.path("script"), may_run).unwrap();
    let run = async |program: &str| setup.run(&[&RUN[..], &["--mcp-command", program]].concat()).await;
    for (program, says) in [
        ("/no/such/program", "there is no such program"),
        ("no-such-program", "there is no such program in PATH"),
        ("./plain", "is not executable"),
        ("./", "is not a file"),
        ("./script", "that does not exist: /no/such/interpreter"),
    ] {
        let result = run(program).await;
        result.assert(2, &format!("--mcp-command {program}: "));
        result.assert(2, says);
    }
    assert!(!setup.path("memory").exists());
}

/// A resumed Job needs the program with which it was started.
#[tokio::test]
async fn a_job_is_not_resumed_without_its_server_program() {
    let setup = Setup::new(super::resume::HOLDS).await;
    setup.write("server", &format!("#!/bin/sh\nexec sh -c '{}' sh 'exit 1'\n", SERVER.replace('\'', "'\\''")));
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.path("server"), may_run).unwrap();
    let run = setup.start(&[&RUN[..], &["--mcp-command", "./server"]].concat());
    setup.wait_for_held(1).await;
    super::resume::interrupt(&run);
    super::resume::ended(run).await.assert(7, "Parked");
    std::fs::remove_file(setup.path("server")).unwrap();
    setup.run(&["--resume", "k-1"]).await.assert(2, "./server: there is no such program");
}

/// Calls an API on this machine with a credential from a file. The API is the control interface of the scripted model.
#[tokio::test]
async fn an_api_is_called_within_its_rules() {
    let script = "
conversations:
  - name: calls
    turns:
      - {calls: [{name: http_get, arguments: {path: /control/held}}]}
      - {expect: {lastToolResultContains: HTTP 200 OK}, calls: [{name: http_get, arguments: {path: /control/requests}}]}
      - {expect: {lastToolResultContains: allow no GET of /control/requests}, say: Done.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let setup = Setup::new(script).await;
    let resources = "  resources:
  - {name: api, type: api_endpoint, auth: {credential: key}, rules: [{methods: [GET], paths: [/control/held]}]}
  - {name: key, type: credential}
";
    setup.write("skill.yaml", &format!("{SKILL}{resources}"));
    setup.write("key", "sk-of-the-api-0123\n");
    let api = format!("api={}", setup.model.url());
    let run = async |more: &[&str]| setup.run(&[&RUN[..], &["--resource", &api], more].concat()).await;
    run(&[]).await.assert(2, "key: calls of `api`, which is bound, need this credential");
    let result = run(&["--resource", "key=@key"]).await;
    result.assert(0, "Succeeded");
    assert!(!result.err.contains("redacted but not used"), "{result:#?}");
    assert_eq!(setup.all_contents().matches("sk-of-the-api-0123").count(), 1, "only in its own file");
}

#[tokio::test]
async fn a_rule_that_names_no_tool_of_the_server_stops_the_lint_and_the_run() {
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let setup = Setup::new(CALLS).await;
    setup.write("skill.yaml", &format!("{SKILL}  policy: {{approvals: [{{toolId: proces_refund}}]}}\n"));
    let url = format!("{}/mcp", orders.url());
    let says = "no tool of the MCP server matches \"proces_refund\": the rule protects nothing";
    setup.bloomery(&["lint", "skill.yaml", "--tools", &url]).await.assert(1, "1 error");
    let run = setup.run(&[&RUN[..], &["--mcp", &url]].concat()).await;
    run.assert(3, says);
    run.assert(3, "did you mean \"process_refund\"?");
    assert!(!setup.log("greeter/jobs/k-1").iter().any(|line| line.contains("model.requested")));
}
