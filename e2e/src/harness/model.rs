//! The scripted model of a tenant, and Models.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::v1alpha1::{Model, ModelProvider, ModelSpec, SecretKeyRef, SecretRef};
use bloomery_testkit::json::typed;
use bloomery_testkit::model_server::{Held, Requests, UserRequests, Violations};
use bloomery_testkit::script::{Conversation, script_text};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::PORT;
use super::pods::Server;
use super::proxy::Service;
use super::tenant::Tenant;
use super::wait::{condition_message, eventually, until};

/// The name of the Secret with the key that the scripted model requires.
const SERVER_KEY: &str = "model-server-key";

/// The scripted model of a tenant.
pub struct ModelServer {
    service: Service,
    namespace: String,
}

impl Tenant {
    /// Starts a scripted model with these conversations. It requires no key.
    pub async fn model_server(&self, conversations: &[Conversation]) -> ModelServer {
        self.scripted_model(conversations, None).await
    }

    /// Starts a scripted model with these conversations that requires a key.
    pub async fn model_server_with_key(&self, conversations: &[Conversation], key: &str) -> ModelServer {
        self.secret(SERVER_KEY, "key", key).await;
        self.scripted_model(conversations, Some(SERVER_KEY)).await
    }

    /// Changes the key that the scripted model requires. The model restarts without its records of requests.
    pub async fn change_model_key(&self, key: &str) {
        self.secret(SERVER_KEY, "key", key).await;
        self.recreate_server("model").await;
    }

    async fn scripted_model(&self, conversations: &[Conversation], key: Option<&str>) -> ModelServer {
        let script: ConfigMap = typed(json!({
            "metadata": {"name": "model-script"}, "data": {"script.yaml": script_text(conversations)}
        }));
        self.create(script).await;
        let mut server = Server {
            name: "model",
            image: "e2e-model",
            env: vec![("MODEL_SCRIPT", "/script/script.yaml".to_owned())],
            volumes: vec![(typed(json!({"name": "script", "configMap": {"name": "model-script"}})), "/script")],
        };
        if let Some(secret) = key {
            server.env.push(("MODEL_API_KEY_FILE", "/key/key".to_owned()));
            server.volumes.push((typed(json!({"name": "key", "secret": {"secretName": secret}})), "/key"));
        }
        self.serve(server).await;
        let service = Service::new(self.cluster.client.clone(), &self.namespace, "model", PORT);
        ModelServer { service, namespace: self.namespace.clone() }
    }

    /// Returns the origin of the scripted model's URLs within the cluster.
    pub fn model_origin(&self) -> String {
        format!("http://model.{}.svc:{PORT}", self.namespace)
    }

    /// Returns a Model of the tenant's scripted model.
    pub fn model(&self, name: &str) -> ModelDraft<'_> {
        let spec = ModelSpec {
            base_url: format!("{}/v1", self.model_origin()),
            ..bloomery_testkit::suite::model(ModelProvider::Openai)
        };
        ModelDraft { tenant: self, model: Model::new(name, spec) }
    }

    /// Waits until the Model `name` is stalled with this reason, and a message that contains `part`.
    pub async fn until_model_stalled(&self, name: &str, reason: &str, part: &str) {
        let is_stalled = |model: &Model| {
            let conditions = model.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            condition_message(conditions, ConditionType::Stalled, reason, &[part]).is_some()
        };
        let what = format!("the reason {reason} with a message that names {part:?}");
        until(&self.api::<Model>(), name, &what, is_stalled).await;
    }

    /// Creates or changes a Secret with one key.
    pub async fn secret(&self, name: &str, key: &str, value: &str) {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: value}});
        let apply = PatchParams::apply("bloomery-e2e").force();
        let written = self.api::<Secret>().patch(name, &apply, &Patch::Apply(&secret)).await;
        written.unwrap_or_else(|error| panic!("Secret {name} cannot be written: {error}"));
    }
}

/// Answer of `GET /control/held`.
#[derive(Deserialize)]
struct HeldRequests {
    held: Vec<Held>,
}

impl ModelServer {
    /// Waits for a request at the hold of this name.
    pub async fn until_held(&self, name: &str) -> Held {
        eventually(&format!("a request at the hold `{name}` in {}", self.namespace), async || {
            let HeldRequests { held } = self.service.get("/control/held").await?;
            held.iter().find(|held| held.name == name).cloned().ok_or_else(|| format!("held are {held:?}"))
        })
        .await
    }

    /// Releases the hold of this name for good.
    pub async fn release(&self, name: &str) {
        let path = format!("/control/release/{name}");
        let _: Value = eventually("the model server to answer", async || self.service.post(&path).await).await;
    }

    /// Waits until a turn of a Job's conversation was requested this many times.
    pub async fn until_asked(&self, job_uid: &str, turn: usize, times: u64) {
        eventually(&format!("turn {turn} to be asked for {times} times"), async || {
            let asked = self.asked_by(job_uid).await;
            if asked.by_position.get(&turn).is_some_and(|so_far| *so_far >= times) { Ok(()) } else { Err(asked) }
        })
        .await;
    }

    /// Returns the counts of requests in the conversation of a Job.
    pub async fn asked_by(&self, job_uid: &str) -> UserRequests {
        let requests: Requests =
            eventually("the model server to answer", async || self.service.get("/control/requests").await).await;
        requests.users.get(job_uid).cloned().unwrap_or_default()
    }

    /// Checks that no request broke the protocol of its provider or an expectation of the script.
    pub async fn assert_no_violations(&self) {
        let found: Violations =
            eventually("the model server to answer", async || self.service.get("/control/violations").await).await;
        assert_eq!(found.total, 0, "the model server received requests that it refuses: {:#?}", found.violations);
    }
}

/// A Model to be written. Awaiting it creates or changes the Model.
pub struct ModelDraft<'t> {
    tenant: &'t Tenant,
    model: Model,
}

impl ModelDraft<'_> {
    /// Reads the key from a Secret.
    #[must_use]
    pub fn with_key_from(mut self, secret: &str, key: &str) -> Self {
        let secret_key_ref = SecretKeyRef { name: secret.to_owned(), key: key.to_owned() };
        self.model.spec.api_key = Some(SecretRef { secret_key_ref });
        self
    }

    /// Sets the timeout in seconds.
    #[must_use]
    pub fn with_timeout(mut self, seconds: u64) -> Self {
        self.model.spec.timeout = Some(std::time::Duration::from_secs(seconds).into());
        self
    }

    /// Sets the spec.
    #[must_use]
    pub fn with_spec(mut self, spec: ModelSpec) -> Self {
        self.model.spec = spec;
        self
    }
}

impl<'t> IntoFuture for ModelDraft<'t> {
    type Output = ();
    type IntoFuture = BoxFuture<'t, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            // An existing Model is changed, as a user corrects it.
            let name = self.model.name_any();
            let apply = PatchParams::apply("bloomery-e2e").force();
            let written = self.tenant.api::<Model>().patch(&name, &apply, &Patch::Apply(&self.model)).await;
            written.unwrap_or_else(|error| panic!("Model {name} cannot be written: {error}"));
        })
    }
}
