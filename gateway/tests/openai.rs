//! The OpenAI front, over the runtime of this machine with a scripted model.

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
    use axum::http::{Request, StatusCode};
    use bloomery_embed::run::options::{ModelOptions, RunOptions};
    use bloomery_embed::{LocalRuntime, LocalTenant, Runtime, Tenant};
    use bloomery_gateway::{Gateway, LoopbackAccess, router};
    use bloomery_testkit::greeter::SKILL;
    use bloomery_testkit::model_server::ModelServer;
    use bloomery_testkit::model_server::script::Script;
    use bloomery_testkit::serving::Running;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::fs;
    use std::time::Duration;
    use tower::ServiceExt;

    /// The goal of a Job selects the first conversation that it contains.
    const SCRIPT: &str = "
conversations:
  - name: again
    match: {goal: Again}
    turns: [{say: Hello again.}]
    finalization: [{json: {passed: true, reasons: []}}, {json: {passed: true, reasons: []}}]
    polish: [{say: Hello again.}, {say: Hello again.}]
  - name: asks
    match: {goal: Ask me}
    turns:
      - {calls: [{name: ask_user, arguments: {text: 'Whom?', choices: [Jane, Joe]}}]}
      - {say: Hello Jane.}
    finalization: [{json: {passed: true, reasons: []}}, {json: {passed: true, reasons: []}}]
    polish: [{say: Hello Jane.}]
  - name: hello
    turns: [{say: Hello., usage: {promptTokens: 100, completionTokens: 10}}]
    finalization: [{json: {passed: true, reasons: []}}, {json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}, {say: Hello.}]
";

    /// The timeout of an answer.
    const TIMEOUT: Duration = Duration::from_mins(1);

    /// A gateway over a memory with a Skill, and a scripted model.
    struct Setup {
        router: Router,
        tenant: LocalTenant,
        _dir: tempfile::TempDir,
        _model: Running,
    }

    impl Setup {
        async fn new() -> Self {
            let model = ModelServer::new(Script::from_yaml(SCRIPT).unwrap());
            let model = model.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("memory/greeter")).unwrap();
            fs::write(dir.path().join("memory/greeter/skill.yaml"), SKILL).unwrap();
            let options = ModelOptions {
                model: Some("scripted".into()),
                model_url: Some(format!("{}/v1", model.url())),
                ..ModelOptions::default()
            };
            let patience = Duration::from_secs(5);
            let options = RunOptions { model: options, patience, ..RunOptions::new(dir.path().join("memory")) };
            let runtime = LocalRuntime::new(BTreeMap::from([("local".to_owned(), options)])).unwrap();
            let tenant = runtime.open("local", "ada".into()).await.unwrap();
            let access = LoopbackAccess::new(80, "t-1", "ada");
            let router = router(Gateway { runtime, access, tenant: "local".into() });
            Self { router, tenant, _dir: dir, _model: model }
        }

        /// Returns the status and the body of a response.
        async fn post(&self, body: &Value, idempotency_key: Option<&str>) -> (StatusCode, String) {
            let request = Request::post("/v1/chat/completions").header(HOST, "localhost:80");
            let request = request.header(AUTHORIZATION, "Bearer t-1").header(CONTENT_TYPE, "application/json");
            let mut request = request.body(Body::from(body.to_string())).unwrap();
            if let Some(key) = idempotency_key {
                request.headers_mut().insert("idempotency-key", key.parse().unwrap());
            }
            let answered = async {
                let response = self.router.clone().oneshot(request).await.unwrap();
                let status = response.status();
                (status, String::from_utf8(to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap())
            };
            tokio::time::timeout(TIMEOUT, answered).await.unwrap()
        }

        /// Returns the answer to a chat in which user and Skill alternate.
        async fn answer(&self, chat: &[&str]) -> String {
            let (status, body) = self.post(&request(chat), None).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["choices"][0]["finish_reason"], "stop");
            body["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        }

        /// Returns the sorted goals of all Jobs.
        async fn goals(&self) -> Vec<String> {
            let mut goals: Vec<String> =
                self.tenant.jobs().await.unwrap().into_iter().map(|summary| summary.goal).collect();
            goals.sort();
            goals
        }
    }

    fn request(chat: &[&str]) -> Value {
        let role = |nth: usize| if nth.is_multiple_of(2) { "user" } else { "assistant" };
        let messages = chat.iter().enumerate().map(|(nth, text)| json!({"role": role(nth), "content": text}));
        json!({"model": "greeter", "messages": messages.collect::<Vec<_>>()})
    }

    #[tokio::test]
    async fn the_next_message_continues_the_job_that_answered() {
        let setup = Setup::new().await;
        assert_eq!(setup.answer(&["Greet me"]).await, "Hello.");
        assert_eq!(setup.answer(&["Greet me", "Hello.", "Again"]).await, "Hello again.");
        // The second Job continues the first one, so its goal is the last message only.
        assert_eq!(setup.goals().await, ["Again", "Greet me"]);
        // The second Job is found in its turn.
        assert_eq!(setup.answer(&["Greet me", "Hello.", "Again", "Hello again.", "Again!"]).await, "Hello again.");
        assert_eq!(setup.goals().await, ["Again", "Again!", "Greet me"]);
    }

    #[tokio::test]
    async fn a_job_that_may_be_another_one_is_not_continued() {
        let setup = Setup::new().await;
        assert_eq!(setup.answer(&["Greet me"]).await, "Hello.");
        // The Skill gave no such answer.
        setup.answer(&["Greet me", "Go away.", "Again"]).await;
        // Two Jobs gave this one.
        assert_eq!(setup.answer(&["Greet me"]).await, "Hello.");
        setup.answer(&["Greet me", "Hello.", "Again"]).await;
        let goals = setup.goals().await;
        let with_chat = goals.iter().filter(|goal| goal.starts_with("The chat so far:\n\nUser: Greet me")).count();
        assert_eq!((goals.len(), with_chat), (4, 2), "{goals:?}");
    }

    #[tokio::test]
    async fn a_job_that_asks_is_continued_by_the_reply() {
        let setup = Setup::new().await;
        let asked = setup.answer(&["Ask me"]).await;
        assert!(asked.starts_with("Whom?\n\n- Jane\n- Joe\n\nThe Job chat-"), "{asked}");
        assert_eq!(setup.answer(&["Ask me", &asked, "Jane"]).await, "Hello Jane.");
        // A repeated request starts nothing.
        assert_eq!(setup.answer(&["Ask me", &asked, "Jane"]).await, "Hello Jane.");
        assert_eq!(setup.goals().await, ["Ask me"]);
        assert_eq!(setup.answer(&["Ask me", &asked, "Jane", "Hello Jane.", "Again"]).await, "Hello again.");
        assert_eq!(setup.goals().await, ["Again", "Ask me"]);
    }

    #[tokio::test]
    async fn a_stream_has_the_answer_that_has_passed_and_the_usage() {
        let setup = Setup::new().await;
        let mut request = request(&["Greet me"]);
        request["stream"] = json!(true);
        request["stream_options"] = json!({"include_usage": true});
        let (status, body) = setup.post(&request, None).await;
        assert_eq!(status, StatusCode::OK);
        let mut data: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("[DONE]"));
        let chunks: Vec<Value> = data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["model"] == "greeter"));
        let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, "Hello.");
        assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
        let usage = &chunks.last().unwrap()["usage"];
        assert!(
            usage["prompt_tokens"].as_u64() >= Some(100) && usage["completion_tokens"].as_u64() >= Some(10),
            "{usage}"
        );
    }

    #[tokio::test]
    async fn an_idempotency_key_starts_one_job() {
        let setup = Setup::new().await;
        for _ in 0..2 {
            assert_eq!(setup.post(&request(&["Greet me"]), Some("one")).await.0, StatusCode::OK);
        }
        assert_eq!(setup.goals().await, ["Greet me"]);
        let (status, _) = setup.post(&request(&["Greet him"]), Some("one")).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(setup.goals().await, ["Greet me"]);
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_served_starts_nothing() {
        let setup = Setup::new().await;
        let with = |name: &str, value: Value| {
            let mut request = request(&["Greet me"]);
            request[name] = value;
            request
        };
        for (request, status, says) in [
            (with("model", json!("nobody")), StatusCode::NOT_FOUND, "nobody"),
            (with("tools", json!([{"type": "function"}])), StatusCode::BAD_REQUEST, "tools"),
            (with("n", json!(2)), StatusCode::BAD_REQUEST, "n is"),
            (with("messages", json!([])), StatusCode::BAD_REQUEST, "messages"),
        ] {
            let (found, body) = setup.post(&request, None).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(found, status, "{body}");
            assert!(body["error"]["message"].as_str().unwrap().contains(says), "{body}");
        }
        assert!(setup.goals().await.is_empty());
    }
}
