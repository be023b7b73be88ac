//! Tools out of MCP servers: at an address, and programs.

use super::stand::{SKILL, Stand};
use bloomery_testkit::orders;

/// Answers what a session begins with and lists the tool `act`, or those that `$2` has; `$1` is done where one is called.
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

pub const ANSWERS: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

const CALLS: &str = "
conversations:
  - name: acts
    turns: [{calls: [{name: act}]}, {expect: {lastToolResultContains: done}, say: Done.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Act", "--run-key", "k-1"];

#[tokio::test]
async fn a_program_is_a_server_and_gets_nothing_of_the_environment_but_what_is_named() {
    let stand = Stand::new(CALLS).await;
    let mcp = ["--mcp-env", "NAMED", "--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    let ran = stand
        .run_command(&[&RUN[..], &mcp].concat())
        .env("SECRET", "sk-1")
        .env("NAMED", "named")
        .output()
        .await
        .unwrap();
    let ran = super::stand::Ran::of(ran);
    ran.assert(0, "the server speaks: named\n");
    let says =
        "--mcp-env NAMED: its value has fewer than 8 bytes, as ordinary words have: it is not redacted from the log";
    ran.assert(0, says);
    assert_eq!(ran.err.matches("fewer than 8 bytes").count(), 1, "{ran:#?}");
    assert_eq!(ran.out, "Done.\n");
}

/// A person names a credential: a program that gets none of it would be refused by whoever asks for it.
#[tokio::test]
async fn a_variable_that_cannot_be_handed_over_is_refused_and_no_value_is_told() {
    let stand = Stand::new(super::resuming::HOLDS).await;
    let run = |names: [&str; 2]| {
        let mcp = ["--mcp-env", names[0], "--mcp-env", names[1], "--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
        let mut command = stand.run_command(&[&RUN[..], &mcp].concat());
        command.env("NAMED", "named").env("LARGE", "x".repeat(16 * 1024 + 1));
        command
    };
    let ran = super::stand::Ran::of(run(["TOKEN=tok-of-the-shop-4711", "NOPE"]).output().await.unwrap());
    ran.assert(2, "--mcp-env TOKEN=...: it takes the name of a variable without a value");
    ran.assert(2, "--mcp-env NOPE: the environment has no such variable");
    assert!(!ran.err.contains("of-the-shop"), "{ran:#?}");
    let ran = super::stand::Ran::of(run(["NAMED", "LARGE"]).output().await.unwrap());
    ran.assert(2, "--mcp-env LARGE: its value has more than 16384 bytes");
    assert!(!stand.path("memory").exists());

    let begun = run(["NAMED", "NAMED"]).spawn().unwrap();
    stand.until_held(1).await;
    super::resuming::interrupt(&begun);
    super::resuming::ended(begun).await.assert(7, "Parked");
    stand.run(&["--resume", "k-1"]).await.assert(2, "--mcp-env NAMED: the environment has no such variable");
}

/// What a program is handed by name is its credential: whoever tells it, it stays out of what is kept and shown.
#[tokio::test]
async fn what_a_program_is_handed_is_kept_out_of_all_that_is_written() {
    let script = "
conversations:
  - name: acts
    turns:
      - {calls: [{name: act}]}
      - {expect: {lastToolResultContains: 'it is [redacted: NAMED]'}, say: It is tok-of-the-shop-4711.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: It is tok-of-the-shop-4711.}]
";
    let tells = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"it is $NAMED\"}]}""#;
    for json in [&[][..], &["--json"]] {
        let stand = Stand::new(script).await;
        let more = ["--mcp-env", "NAMED", "--mcp-env", "PATH", "--mcp-command", "sh", "-c", SERVER, "sh", tells];
        let goal = ["--skill", "./skill.yaml", "--goal", "Act with tok-of-the-shop-4711", "--run-key", "k-1"];
        let mut command = stand.run_command(&[&goal[..], json, &more].concat());
        let ran = super::stand::Ran::of(command.env("NAMED", "tok-of-the-shop-4711").output().await.unwrap());
        ran.assert(0, "It is [redacted: NAMED].");
        ran.assert(0, "the server speaks: [redacted: NAMED]");
        let all = stand.everything() + &ran.out + &ran.err;
        assert!(!all.contains("of-the-shop"), "{all}");
        assert!(stand.read("memory/greeter/jobs/k-1/run.json").contains("Act with [redacted: NAMED]"));
        assert!(stand.read("memory/greeter/logs/k-1.log").contains("[redacted: NAMED]"));
        stand.was_asked_without_fault().await;
    }
}

/// On a cluster, too, no MCP server is handed a secret that a Job binds.
#[tokio::test]
async fn a_secret_that_nothing_is_called_with_is_said_to_be_idle() {
    let stand = Stand::new(CALLS).await;
    let resources = "  resources: [{name: database, type: connection_string}]\n";
    stand.write("skill.yaml", &format!("{SKILL}{resources}"));
    stand.write("dbf", "postgres://me:hunter22@db/orders\n");
    let more = ["--resource", "database=@dbf", "--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    let ran = stand.run(&[&RUN[..], &more].concat()).await;
    ran.assert(0, "database: this connection_string is redacted but unused");
    ran.assert(0, "Pass a secret to a program with --mcp-env");
    assert!(!ran.err.contains("fewer than"), "{ran:#?}");
    stand.write("dbf", " abc\n");
    stand.write("key", "k-9\n");
    let again = ["--api-key-file", "key", "--run-key", "k-2"];
    let ran = stand.run(&[&RUN[..4], &again, &more].concat()).await;
    ran.assert(0, "database: its value has fewer than 8 bytes");
    ran.assert(0, "the key of the model default: its value has fewer than 8 bytes");
    assert!(!ran.err.contains("abc") && !ran.err.contains("k-9"), "{ran:#?}");
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_a_question_and_is_not_made_again() {
    let stand = Stand::new(CALLS).await;
    let mcp = ["--mcp-command", "sh", "-c", SERVER, "sh", "echo x >>acted; exit 1"];
    stand.run(&[&RUN[..], &mcp].concat()).await.assert(5, "ToolIndeterminate");
    stand.run(&["--resume", "k-1"]).await.assert(5, "ToolIndeterminate");
    assert_eq!(stand.read("acted"), "x\n");
}

#[tokio::test]
async fn a_server_at_an_address_is_given_or_the_skills_own() {
    let script = "
conversations:
  - name: looks
    turns: [{expect: {toolsOffered: [track_order]}, say: Done.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let stand = Stand::new(script).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    stand.run(&[&RUN[..4], &["--mcp", &url]].concat()).await.assert(0, "Succeeded");
    stand.write("dialect.yaml", &format!("id: dialect\nmcp_server: {url}\n"));
    stand.run(&["--skill", "./dialect.yaml", "--goal", "Look"]).await.assert(0, "Succeeded");
    stand.write("skill.yaml", &format!("{SKILL}  mcpServer: {{service: {{name: orders, port: 80, path: /mcp}}}}\n"));
    stand.run(&RUN[..4]).await.assert(2, "name it with --mcp URL or --mcp-command PROGRAM");
    stand.run(&[&RUN[..4], &["--mcp", &url]].concat()).await.assert(0, "Succeeded");
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
    let stand = Stand::new(script).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    let ran = stand.run(&["--skill", "cs-tier-1", "--goal", "Refund B-4", "--mcp", &url]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is too late.\n"), "{ran:#?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_waited_for_in_vain() {
    let stand = Stand::new(CALLS).await;
    let absent = ["run", "--model-url", "http://127.0.0.1:9/v1", "--mcp", "http://127.0.0.1:9/mcp", "--patience", "0"];
    let ran = stand.bloomery(&[&absent[..], &RUN[..4]].concat()).await;
    ran.assert(3, "McpUnavailable");
    ran.assert(3, "It was waited for");
}

#[tokio::test]
async fn what_a_server_tells_of_a_call_is_printed_and_followed_while_it_is_under_way() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    for json in [&["--json"][..], &[]] {
        let stand = Stand::new(CALLS).await;
        stand.write("server.sh", SERVER);
        stand.write("tells.sh", super::people::TELLS);
        let mcp = ["--mcp-command", "sh", "server.sh", ". ./tells.sh"];
        let mut run = stand.start(&[&RUN[..], json, &mcp].concat());
        let (out, err) = (run.stdout.take().unwrap(), run.stderr.take().unwrap());
        let mut printed: Box<dyn tokio::io::AsyncBufRead + Unpin> =
            if json.is_empty() { Box::new(BufReader::new(err)) } else { Box::new(BufReader::new(out)) };
        stand.until_there_is("memory/greeter/jobs/k-1/00000000000000000001.jsonl").await;
        let mut follow = stand.command(&["events", "--follow", "k-1"]).spawn().unwrap();
        let mut followed: Box<dyn tokio::io::AsyncBufRead + Unpin> =
            Box::new(BufReader::new(follow.stdout.take().unwrap()));
        // The call goes on only when both have been seen.
        for reader in [&mut printed, &mut followed] {
            let mut line = String::new();
            while !(line.contains("tool.progressed") && line.contains("picking")) {
                line.clear();
                assert_ne!(reader.read_line(&mut line).await.unwrap(), 0, "it ends without");
            }
        }
        stand.write("go", "");
        drop(followed);
        assert_eq!(run.wait().await.unwrap().code(), Some(0));
        follow.wait().await.unwrap();
    }
}

/// Nobody is to wait for what only another command line mends.
#[tokio::test]
async fn a_server_that_is_elsewhere_or_wants_credentials_is_said_at_once() {
    use axum::http::{StatusCode, header::LOCATION};
    let stand = Stand::new(CALLS).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let moved = || async { (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/mcp/")]) };
    let locked = || async { (StatusCode::UNAUTHORIZED, "no token") };
    let router = axum::Router::new().route("/mcp", axum::routing::any(moved)).fallback(locked);
    tokio::spawn(async move { axum::serve(listener, router).await });
    for (url, says) in [
        (
            format!("{at}/mcp"),
            format!("it answered HTTP 307, which points to {at}/mcp/, and redirects are not followed"),
        ),
        (format!("{at}/locked"), "it answered HTTP 401: no token.".to_owned()),
    ] {
        let mut command = stand.command(&["run", "--model-url", "http://127.0.0.1:9/v1", "--patience", "600"]);
        let ran = command.args(RUN[..4].iter().copied().chain(["--mcp", &url])).output();
        let ran = tokio::time::timeout(super::stand::PATIENCE, ran).await.expect(&says);
        let ran = super::stand::Ran::of(ran.unwrap());
        ran.assert(3, "McpUnavailable: T");
        assert!(ran.err.contains(&says) && !ran.err.contains("waited for"), "{says}: {ran:#?}");
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_used_is_named_and_the_others_are_used() {
    let stand = Stand::new(CALLS).await;
    let tools = r#"{"name":"act","inputSchema":{"type":"object"}},{"name":"bare"},{"name":"yes","inputSchema":true}"#;
    let large =
        format!(r#"{{"name":"large","inputSchema":{{"type":"object"}},"description":"{}"}}"#, "x".repeat(66_000));
    stand.write("tools", &format!("{tools},{large}"));
    let server = format!("tools=$(cat tools)\n{}", SERVER.replace("tools=$2\n", ""));
    let ran = stand.run(&[&RUN[..], &["--mcp-command", "sh", "-c", &server, "sh", ANSWERS]].concat()).await;
    for says in [
        "the MCP server lists the tool \"bare\", which is ignored: it has no inputSchema",
        "the MCP server lists the tool \"yes\", which is ignored: its inputSchema is no object",
        "the MCP server lists the tool \"large\", which is ignored: its definition takes 66022 bytes, and the most is 65536",
    ] {
        ran.assert(0, says);
    }
    assert_eq!(ran.out, "Done.\n");
}

/// Nothing is to be expected of a program that ends as soon as it is started: it is told, whatever the patience is.
#[tokio::test]
async fn a_program_that_ends_or_is_none_is_said_at_once() {
    let stand = Stand::new(CALLS).await;
    stand.write("binary", "\u{7f}ELF, but no more");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(stand.path("binary"), may_run).unwrap();
    let ends = ["sh", "-c", "echo starting >&2; echo no KEY is set >&2; exit 3"];
    for (program, says) in [
        (
            &ends[..],
            "the MCP server `sh` cannot be asked for its tools: the program ended (exit status: 3) and said last: starting / no KEY is set.",
        ),
        (
            &["./binary"],
            "the MCP server `./binary` cannot be asked for its tools: it cannot be started: Exec format error",
        ),
    ] {
        let args =
            [&["--skill", "./skill.yaml", "--goal", "Act", "--patience", "600", "--mcp-command"], program].concat();
        let mut command = stand.command(&["run", "--model-url", "http://127.0.0.1:9/v1"]);
        let ran = tokio::time::timeout(super::stand::PATIENCE, command.args(args).output()).await.expect(says);
        let ran = super::stand::Ran::of(ran.unwrap());
        ran.assert(3, "McpUnavailable: T");
        assert!(ran.err.contains(&says[1..]), "{says}: {ran:#?}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_said_at_once() {
    let stand = Stand::new(CALLS).await;
    stand.write("plain", "");
    stand.write("script", "#!/no/such/interpreter\n");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(stand.path("script"), may_run).unwrap();
    let run = async |program: &str| stand.run(&[&RUN[..], &["--mcp-command", program]].concat()).await;
    for (program, says) in [
        ("/no/such/program", "there is no such program"),
        ("no-such-program", "there is no such program in PATH"),
        ("./plain", "is not executable"),
        ("./", "is not a file"),
        ("./script", "that does not exist: /no/such/interpreter"),
    ] {
        let ran = run(program).await;
        ran.assert(2, &format!("--mcp-command {program}: "));
        ran.assert(2, says);
    }
    assert!(!stand.path("memory").exists());
}

/// A program that was there when the Job began has to be there when it goes on.
#[tokio::test]
async fn a_program_that_is_gone_is_said_before_the_job_goes_on() {
    let stand = Stand::new(super::resuming::HOLDS).await;
    stand.write("server", &format!("#!/bin/sh\nexec sh -c '{}' sh 'exit 1'\n", SERVER.replace('\'', "'\\''")));
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(stand.path("server"), may_run).unwrap();
    let run = stand.start(&[&RUN[..], &["--mcp-command", "./server"]].concat());
    stand.until_held(1).await;
    super::resuming::interrupt(&run);
    super::resuming::ended(run).await.assert(7, "Parked");
    std::fs::remove_file(stand.path("server")).unwrap();
    stand.run(&["--resume", "k-1"]).await.assert(2, "./server: there is no such program");
}

/// An API on this machine, with a credential out of a file: here what the model's own server tells of itself.
#[tokio::test]
async fn an_api_is_called_as_its_rules_allow() {
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
    let stand = Stand::new(script).await;
    let resources = "  resources:
  - {name: api, type: api_endpoint, auth: {credential: key}, rules: [{methods: [GET], paths: [/control/held]}]}
  - {name: key, type: credential}
";
    stand.write("skill.yaml", &format!("{SKILL}{resources}"));
    stand.write("key", "sk-of-the-api-0123\n");
    let api = format!("api={}", stand.model.url());
    let run = async |more: &[&str]| stand.run(&[&RUN[..], &["--resource", &api], more].concat()).await;
    run(&[]).await.assert(2, "key: calls of `api`, which is bound, need this credential");
    let ran = run(&["--resource", "key=@key"]).await;
    ran.assert(0, "Succeeded");
    assert!(!ran.err.contains("redacted but unused"), "{ran:#?}");
    assert_eq!(stand.everything().matches("sk-of-the-api-0123").count(), 1, "in its own file only");
}
