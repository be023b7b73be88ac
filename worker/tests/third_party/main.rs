//! Tests the MCP client with two third-party servers: the reference "everything" server from npm, which uses an older version of MCP,
//! and a time server from the Python package index, whose SDK uses a newer one.
//!
//! It also runs the client scenarios of the MCP conformance suite.
//!
//! `hack/third-party` installs them in the versions that `servers/` locks. Each test starts the server that it needs.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod server;

#[cfg(test)]
mod tests {
    use crate::server::Server;
    use bloomery_crds::Digest;
    use bloomery_crds::run::{BoundResource, McpEndpoint, ResourceSource};
    use bloomery_crds::v1alpha1::ResourceType;
    use bloomery_engine::event::{CallId, ToolProgress};
    use bloomery_engine::schema::Schema;
    use bloomery_engine::step::ToolCall;
    use bloomery_engine::tool::{ListedTool, ToolSource};
    use bloomery_mcp::{CallOutcome, CallResult, Client};
    use bloomery_redact::Redactor;
    use serde_json::Value;
    use std::cell::RefCell;
    use std::time::Duration;

    /// A time limit that no call reaches.
    const PLENTY: Duration = Duration::from_mins(1);

    /// A client, and the tools at the start of the Job.
    pub(crate) struct Job {
        pub(crate) client: Client,
        pub(crate) tools: Vec<ListedTool>,
    }

    impl Job {
        async fn of(server: &Server) -> Self {
            Self::at(server.url()).await
        }

        pub(crate) async fn at(url: String) -> Self {
            bloomery_http::install_tls_provider();
            let docs = BoundResource {
                name: "docs".into(),
                kind: ResourceType::ApiEndpoint,
                source: ResourceSource::Value("https://docs.example".into()),
            };
            let client = Client::new(&McpEndpoint { url }, Redactor::default()).unwrap().with_resources(&[docs]);
            let tools = client.list(PLENTY).await.unwrap();
            Self { client, tools }
        }

        fn tool(&self, name: &str) -> &ListedTool {
            self.tools.iter().find(|tool| tool.name == name).unwrap()
        }

        pub(crate) async fn call(&self, tool: &str, arguments: &str, within: Duration) -> CallResult {
            self.call_with_progress(tool, arguments, within).await.0
        }

        /// Makes a call. Returns its result and the reported progress.
        async fn call_with_progress(
            &self,
            tool: &str,
            arguments: &str,
            within: Duration,
        ) -> (CallResult, Vec<ToolProgress>) {
            let (id, definition) = (CallId::new(7, 0), self.tool(tool).digest());
            let call = ToolCall {
                id: &id,
                tool,
                arguments,
                key: Digest::of_bytes(b"the key"),
                idempotent: false,
                read_only: false,
                sent_before: false,
                source: ToolSource::Server,
                definition: &definition,
                timeout_seconds: None,
            };
            let progress = RefCell::new(Vec::new());
            let called = self.client.call(&call, within, &|report| progress.borrow_mut().push(report)).await;
            (called, progress.into_inner())
        }

        async fn completed(&self, tool: &str, arguments: &str) -> (String, Option<Value>, Vec<Vec<u8>>) {
            match self.call(tool, arguments, PLENTY).await.outcome {
                CallOutcome::Completed { text, structured, media } => (text, structured, media),
                other => panic!("{tool}: {other:?}"),
            }
        }

        async fn failed(&self, tool: &str, arguments: &str) -> String {
            match self.call(tool, arguments, PLENTY).await.outcome {
                CallOutcome::Failed { text, .. } => text,
                other => panic!("{tool}: {other:?}"),
            }
        }

        /// Returns the first error of an output against the output schema that the server lists.
        fn schema_error(&self, tool: &str, output: &Value) -> Option<String> {
            Schema::compile(self.tool(tool).output_schema.as_ref().unwrap()).first_error(output)
        }
    }

    #[tokio::test]
    async fn the_reference_server_is_listed_and_called() {
        let server = Server::everything();
        let job = Job::of(&server).await;
        assert_eq!(job.tool("echo").read_only_hint(), Some(true));
        assert_eq!(job.tool("get-structured-content").title.as_deref(), Some("Get Structured Content Tool"));

        let (text, ..) = job.completed("echo", r#"{"message":"hello"}"#).await;
        assert_eq!(text, "Echo: hello");
        let (text, ..) = job.completed("get-sum", r#"{"a":2,"b":0.5}"#).await;
        assert!(text.contains("2.5"), "{text}");
        let error = job.failed("get-sum", r#"{"a":"two"}"#).await;
        assert!(error.contains("-32602"), "{error}");

        let (text, structured, _) = job.completed("get-structured-content", r#"{"location":"Chicago"}"#).await;
        let structured = structured.unwrap();
        assert_eq!((text, job.schema_error("get-structured-content", &structured)), (structured.to_string(), None));
        assert!(job.schema_error("get-structured-content", &serde_json::json!({"temperature": "warm"})).is_some());
        job.client.close().await;
    }

    #[tokio::test]
    async fn images_and_resources_are_media_and_links_are_text() {
        let server = Server::everything();
        let job = Job::of(&server).await;
        let (text, _, media) = job.completed("get-tiny-image", "{}").await;
        assert!(media[0].starts_with(b"\x89PNG"), "not a PNG image");
        let note = format!(
            "[image, image/png, {} bytes, kept as {}; it is not text]",
            media[0].len(),
            Digest::of_bytes(&media[0])
        );
        assert_eq!(text, format!("Here's the image you requested:\n{note}\nThe image above is the MCP logo."));

        let (text, _, media) = job.completed("get-resource-links", r#"{"count":2}"#).await;
        assert_eq!((text.matches("[link to the resource demo://").count(), media.len()), (2, 0), "{text}");
        let (text, ..) = job.completed("get-resource-reference", r#"{"resourceType":"Text","resourceId":1}"#).await;
        assert!(text.contains("[resource demo://resource/dynamic/text/1, text/plain]\n"), "{text}");
        let (text, _, media) =
            job.completed("get-resource-reference", r#"{"resourceType":"Blob","resourceId":1}"#).await;
        assert!(text.contains("[resource demo://resource/dynamic/blob/1, "), "{text}");
        assert_eq!(media.len(), 1);
    }

    #[tokio::test]
    async fn progress_is_reported_and_a_call_ends_at_its_time_limit() {
        let server = Server::everything();
        let job = Job::of(&server).await;
        let tool = "trigger-long-running-operation";
        let (called, progress) = job.call_with_progress(tool, r#"{"duration":0.3,"steps":3}"#, PLENTY).await;
        assert!(matches!(called.outcome, CallOutcome::Completed { .. }), "{:?}", called.outcome);
        let step = |n: u32| ToolProgress { progress: Some(n.into()), total: Some(3.0), ..ToolProgress::default() };
        assert_eq!(progress, [step(1), step(2), step(3)]);

        let (called, progress) =
            job.call_with_progress(tool, r#"{"duration":600,"steps":60000}"#, Duration::from_secs(1)).await;
        let CallOutcome::Indeterminate { text } = &called.outcome else { panic!("{:?}", called.outcome) };
        assert!(text.contains("it did not answer within"), "{text}");
        assert!(!progress.is_empty());
        let (text, ..) = job.completed("echo", r#"{"message":"still here"}"#).await;
        assert_eq!(text, "Echo: still here");
    }

    #[tokio::test]
    async fn the_time_server_is_listed_and_called() {
        let server = Server::time();
        let job = Job::of(&server).await;
        let names: Vec<_> = job.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["get_current_time", "convert_time"]);
        assert_eq!(job.tool("convert_time").read_only_hint(), Some(true));

        let arguments = r#"{"source_timezone":"Asia/Tokyo","target_timezone":"Asia/Kathmandu","time":"12:00"}"#;
        let (text, structured, _) = job.completed("convert_time", arguments).await;
        let structured = structured.unwrap();
        assert_eq!((text, &structured["time_difference"]), (structured.to_string(), &Value::from("-3.25h")));
        assert_eq!(job.schema_error("convert_time", &structured), None);
        assert!(job.schema_error("convert_time", &serde_json::json!({"source": {}})).is_some());

        let error = job.failed("get_current_time", r#"{"timezone":"Europe/Atlantis"}"#).await;
        assert!(error.contains("Atlantis"), "{error}");
        let again = job.call("get_current_time", r#"{"timezone":"UTC"}"#, PLENTY).await;
        assert_eq!(again.listed, None, "the tools were listed in this session");
    }
}
