//! Runs the bridge as a process before real stdio servers and scripts, and calls them with the worker's client.

#[cfg(test)]
mod bridge;
#[cfg(test)]
mod protected;
#[cfg(test)]
mod script;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod third_party;

#[cfg(test)]
mod tests {
    use crate::bridge::{Bridge, Job};
    use crate::script::{ANSWER_DONE, SERVER, server, stateless_server};
    use bloomery_mcp::CallOutcome;
    use rstest::rstest;

    #[tokio::test]
    async fn a_stdio_server_is_listed_and_called() {
        let bridge = Bridge::start(&[], &server(ANSWER_DONE));
        let job = Job::at(bridge.url()).await;
        assert_eq!(job.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["act"]);
        assert_eq!(job.completed("act").await, "done");
        job.client.close().await;
        assert!(bridge.stop().contains("started"), "the standard error of the server is in the log");
    }

    #[tokio::test]
    async fn progress_and_log_lines_reach_the_call() {
        let act = r#"
            printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"half"}}\n' "$id"
            printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"packing"}}\n'
            answer '{"content":[{"type":"text","text":"done"}]}'"#;
        let bridge = Bridge::start(&[], &server(act));
        let job = Job::at(bridge.url()).await;
        let (outcome, progress) = job.call("act").await;
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
        let shown = format!("{progress:?}");
        assert!(progress.len() == 2 && shown.contains("half") && shown.contains("packing"), "{shown}");
    }

    #[tokio::test]
    async fn each_session_has_a_process_of_its_own() {
        let bridge = Bridge::start(&[], &server(r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}""#));
        let (one, other) = (Job::at(bridge.url()).await, Job::at(bridge.url()).await);
        let processes = [one.completed("act").await, other.completed("act").await, one.completed("act").await];
        assert_eq!(processes[0], processes[2]);
        assert_ne!(processes[0], processes[1]);
    }

    #[tokio::test]
    async fn a_call_is_indeterminate_if_the_process_ends_and_the_next_call_begins_another_session() {
        let dir = tempfile::tempdir().unwrap();
        let act = format!("if [ -e {0} ]; then {ANSWER_DONE}; else : >{0}; exit 3; fi", dir.path().join("x").display());
        let bridge = Bridge::start(&[], &server(&act));
        let job = Job::at(bridge.url()).await;
        let (outcome, _) = job.call("act").await;
        let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
        assert!(text.contains("the process of the MCP server ended before it answered"), "{text}");
        assert_eq!(job.completed("act").await, "done");
        assert!(bridge.stop().contains("exit status: 3"));
    }

    #[tokio::test]
    async fn an_idle_session_ends_for_a_new_one_and_its_client_begins_another() {
        let bridge = Bridge::start(&["--max-sessions=1"], &server(ANSWER_DONE));
        let (one, other) = (Job::at(bridge.url()).await, Job::at(bridge.url()).await);
        for job in [&one, &other, &one] {
            assert_eq!(job.completed("act").await, "done");
        }
    }

    #[tokio::test]
    async fn a_server_without_sessions_has_one_process_for_all_clients() {
        let dir = tempfile::tempdir().unwrap();
        let starts = dir.path().join("starts");
        let act = r#"answer '{"resultType":"complete","content":[{"type":"text","text":"done"}]}'"#;
        let bridge = Bridge::start(&[], &stateless_server(&format!("echo >>{}", starts.display()), act));
        let (one, other) = (Job::at(bridge.url()).await, Job::at(bridge.url()).await);
        let (first, second) = tokio::join!(one.completed("act"), other.completed("act"));
        assert_eq!([first, second], ["done", "done"]);
        // Two to find out the era, and one for the clients.
        assert_eq!(std::fs::read_to_string(starts).unwrap().lines().count(), 3);
    }

    #[tokio::test]
    async fn requests_of_the_server_are_declined_and_pings_are_answered() {
        let act = r#"
            printf '{"jsonrpc":"2.0","id":"p","method":"ping"}\n'; IFS= read -r pong
            printf '{"jsonrpc":"2.0","id":"r","method":"roots/list"}\n'; IFS= read -r refused
            case $pong$refused in *'"id":"p","result"'*'"id":"r","error"'*) answer '{"content":[{"type":"text","text":"done"}]}' ;; esac"#;
        let bridge = Bridge::start(&[], &server(act));
        assert_eq!(Job::at(bridge.url()).await.completed("act").await, "done");
    }

    #[tokio::test]
    async fn a_running_call_is_answered_before_the_bridge_stops() {
        let dir = tempfile::tempdir().unwrap();
        let [called, released] = ["called", "released"].map(|name| dir.path().join(name));
        // A FIFO opens when both ends are there, so nobody waits for a time.
        for fifo in [&called, &released] {
            assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }
        let act = format!(": >{}; : <{}; {ANSWER_DONE}", called.display(), released.display());
        let bridge = Bridge::start(&[], &server(&act));
        let job = Job::at(bridge.url()).await;
        let stopping = async {
            tokio::fs::read(&called).await.unwrap();
            bridge.terminate();
            tokio::fs::write(&released, "").await.unwrap();
        };
        let ((outcome, _), ()) = tokio::join!(job.call("act"), stopping);
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
        assert!(bridge.exit_status().success());
    }

    #[rstest]
    #[case::absent(&["/no/such/program"], "it cannot be started: No such file or directory")]
    #[case::ends(&["sh", "-c", "echo no token >&2; exit 7"], "it ended, or closed its output, without an answer")]
    #[case::another_protocol(&["sh", "-c", r#"while read -r line; do echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"eh"}}'; done"#], "it does not speak MCP")]
    fn a_server_that_cannot_be_used_ends_the_bridge_before_it_listens(#[case] argv: &[&str], #[case] reason: &str) {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let (status, log) = Bridge::run_to_end(&argv);
        assert!(!status.success() && log.contains(reason), "{log}");
    }

    /// What a client other than the worker sees.
    #[tokio::test]
    async fn requests_outside_of_a_session_and_of_browsers_are_refused() {
        let bridge = Bridge::start(&[], &server(ANSWER_DONE));
        let http = reqwest::Client::new();
        let post = |body: &'static str| http.post(bridge.url()).header("content-type", "application/json").body(body);
        let list = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;
        let answered = [
            post(list).send().await.unwrap(),
            post(list).header("mcp-session-id", "1").send().await.unwrap(),
            post(list).header("origin", "http://evil.example").send().await.unwrap(),
            post("[]").send().await.unwrap(),
            http.get(bridge.url()).send().await.unwrap(),
            http.delete(bridge.url()).send().await.unwrap(),
        ];
        assert_eq!(answered.map(|response| response.status().as_u16()), [400, 404, 403, 400, 405, 404]);
    }

    #[test]
    fn the_script_of_these_tests_has_the_lines_that_they_replace() {
        assert!(
            SERVER.contains(r#"*'"method":"initialize"'*)"#)
                && stateless_server("", "").concat().contains("server/discover")
        );
    }
}
