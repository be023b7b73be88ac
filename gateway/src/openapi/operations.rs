//! The operations of the API.

use super::operation::{DOCUMENT_PATH, Operation};
use super::schemas::Schemas;
use crate::chat::{ChatRequest, Started};
use crate::input::{DecisionRequest, ReplyRequest};
use crate::openai::{Completion, CompletionRequest, ModelList};
use crate::problem::Problem;
use crate::read::List;
use bloomery_crds::v1alpha1::WorkflowProgress;
use bloomery_embed::{JobEvent, JobStatus, JobSummary, ModelContext, OpenRequests, SkillState, SkillTool};
use schemars::Schema;
use serde_json::{Value, json};

/// The errors of a request about an object: a path that is not UTF-8, or no such object.
const ABOUT_OBJECT: &[u16] = &[400, 404];

/// The errors of input for a Job.
const ABOUT_INPUT: &[u16] = &[400, 404, 409];

/// Returns all operations.
pub(super) fn all(schemas: &mut Schemas) -> Vec<Operation> {
    let mut all = Vec::from(of_chats(schemas));
    all.extend(of_jobs(schemas));
    all.extend(of_input(schemas));
    all.extend(of_skills(schemas));
    all
}

/// Returns an operation without headers and body.
fn get(path: &'static str, summary: &'static str, response: Value, errors: &'static [u16]) -> Operation {
    let responses = vec![(200, response)];
    Operation { path, method: "get", summary, headers: Vec::new(), body: None, responses, errors }
}

fn of_chats(schemas: &mut Schemas) -> [Operation; 4] {
    let mut started = json_body("The Job has started", &schemas.response::<Started>());
    if let Some(started) = started.as_object_mut() {
        let location = json!({"required": true, "schema": {"type": "string"}, "description": "The path of the Job"});
        started.insert("headers".to_owned(), json!({"Location": location}));
    }
    let completion = json!({
        "description": "The answer of the Job, once it has ended or waits for a person",
        "content": {
            "application/json": {"schema": schemas.response::<Completion>()},
            "text/event-stream": {"schema": event(&json!({"type": "string"}))},
        },
    });
    [
        Operation {
            path: "/api/chat",
            method: "post",
            summary: "Start a Job. A client that accepts text/event-stream follows it",
            headers: vec![idempotency_key()],
            body: Some(schemas.request::<ChatRequest>()),
            responses: vec![(202, started), (200, events("The events of the Job", schemas))],
            errors: ABOUT_INPUT,
        },
        get("/v1/models", "List the Skills as models", json_body("The models", &schemas.response::<ModelList>()), &[]),
        Operation {
            path: "/v1/chat/completions",
            method: "post",
            summary: "Answer the last message of a chat by a Job",
            headers: vec![idempotency_key()],
            body: Some(schemas.request::<CompletionRequest>()),
            responses: vec![(200, completion)],
            errors: ABOUT_INPUT,
        },
        get(DOCUMENT_PATH, "Describe this API", json_body("The description", &Schema::default()), &[]),
    ]
}

fn of_jobs(schemas: &mut Schemas) -> [Operation; 4] {
    let projection = json!({"anyOf": [
        schemas.response::<JobStatus>(),
        schemas.response::<List<JobEvent>>(),
        schemas.response::<ModelContext>(),
        schemas.response::<List<WorkflowProgress>>(),
        schemas.response::<OpenRequests>(),
    ]});
    let projection = json!({"description": "The projection", "content": {"application/json": {"schema": projection}}});
    let last_event_id = json!({
        "name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"},
        "description": "The number of the last event that the client has",
    });
    let ended = json!({"description": "The Job has ended, and the client has all its events"});
    [
        get("/api/jobs", "List the Jobs", json_body("The Jobs", &schemas.response::<List<JobSummary>>()), &[]),
        get(
            "/api/jobs/{job}",
            "Return the state of a Job",
            json_body("The state", &schemas.response::<JobStatus>()),
            ABOUT_OBJECT,
        ),
        Operation {
            headers: vec![last_event_id],
            responses: vec![(200, events("The events after the last one of the client", schemas)), (204, ended)],
            ..get("/api/jobs/{job}/events", "Follow a Job", Value::Null, ABOUT_OBJECT)
        },
        get("/api/jobs/{job}/projections/{key}", "Return a projection of a Job", projection, ABOUT_OBJECT),
    ]
}

fn of_input(schemas: &mut Schemas) -> [Operation; 3] {
    let input = |path, summary, body| Operation {
        path,
        method: "post",
        summary,
        headers: Vec::new(),
        body,
        responses: vec![(202, json!({"description": "The Job receives the input"}))],
        errors: ABOUT_INPUT,
    };
    [
        input(
            "/api/jobs/{job}/replies",
            "Answer a question, or send a message",
            Some(schemas.request::<ReplyRequest>()),
        ),
        input("/api/jobs/{job}/approvals/{call}", "Decide on a held call", Some(schemas.request::<DecisionRequest>())),
        input("/api/jobs/{job}/cancel", "Cancel a Job", None),
    ]
}

fn of_skills(schemas: &mut Schemas) -> [Operation; 2] {
    let skills = json_body("The Skills", &schemas.response::<List<SkillState>>());
    let tools = json_body("The tools", &schemas.response::<List<SkillTool>>());
    [
        get("/api/skills", "Read the Skills again, and list them", skills, &[]),
        get("/api/skills/{skill}/tools", "List the tools of a Skill that its policy allows", tools, ABOUT_OBJECT),
    ]
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
        "description": "A repeated request with the same key and body starts no second Job",
    })
}

fn json_body(description: &str, schema: &Schema) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// Returns the response with the events of a Job. If it fails, the last event is a problem.
fn events(description: &str, schemas: &mut Schemas) -> Value {
    let data = json!({"anyOf": [schemas.response::<JobEvent>(), schemas.response::<Problem>()]});
    let data = json!({"type": "string", "contentMediaType": "application/json", "contentSchema": data});
    json!({"description": description, "content": {"text/event-stream": {"schema": event(&data)}}})
}

/// Returns the schema of each event of a stream.
fn event(data: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["data"],
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": data},
    })
}
