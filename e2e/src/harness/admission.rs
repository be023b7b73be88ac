//! Creating, changing and printing objects of Bloomery's kinds as untyped JSON.

use std::collections::BTreeMap;

use axum::http::{Request, header};
use bloomery_crds::v1alpha1::{Approval, Job, Model, Skill};
use bloomery_testkit::json::typed;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Deserialize;
use serde_json::Value;

use super::objects::Refusal;
use super::tenant::Tenant;

/// The objects of one kind as untyped JSON, which may have fields that the Rust types lack.
pub struct ObjectApi {
    api: Api<DynamicObject>,
    resource: ApiResource,
    tenant: String,
    client: kube::Client,
}

impl Tenant {
    /// Returns the Skills of the tenant.
    pub fn skills(&self) -> ObjectApi {
        self.object_api::<Skill>()
    }

    /// Returns the Jobs of the tenant.
    pub fn jobs(&self) -> ObjectApi {
        self.object_api::<Job>()
    }

    /// Returns the Models of the tenant.
    pub fn models(&self) -> ObjectApi {
        self.object_api::<Model>()
    }

    /// Returns the Approvals of the tenant.
    pub fn approvals(&self) -> ObjectApi {
        self.object_api::<Approval>()
    }

    fn object_api<K: Resource<DynamicType = ()>>(&self) -> ObjectApi {
        let resource = ApiResource::erase::<K>(&());
        let client = self.cluster.client.clone();
        let api = Api::namespaced_with(client.clone(), &self.namespace, &resource);
        ObjectApi { api, resource, tenant: self.namespace.clone(), client }
    }
}

impl ObjectApi {
    /// Creates an object. Fails if the API server refuses it.
    pub async fn create(&self, name: &str, spec: &Value) {
        if let Err(refusal) = self.attempt(name, spec, false).await {
            panic!("{name} should be accepted: {refusal}");
        }
    }

    /// Creates an object as a dry run. Fails if the API server refuses it.
    pub async fn accepts(&self, name: &str, spec: &Value) {
        if let Err(refusal) = self.attempt(name, spec, true).await {
            panic!("{name} should be accepted: {refusal}");
        }
    }

    /// Creates an object as a dry run. Returns the message of the refusal. Fails if the API server accepts the object.
    pub async fn refuses(&self, name: &str, spec: &Value) -> String {
        match self.attempt(name, spec, true).await {
            Err(Refusal(message)) => message,
            Ok(()) => panic!("{name} should be refused: {spec:#}"),
        }
    }

    /// Creates an object as a dry run.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn try_create(&self, name: &str, spec: &Value) -> Result<(), Refusal> {
        self.attempt(name, spec, true).await
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn change(&self, name: &str, patch: &Value) -> Result<(), Refusal> {
        outcome(self.api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Changes the status of an object by a merge patch.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn change_status(&self, name: &str, status: &Value) -> Result<(), Refusal> {
        let patch = serde_json::json!({ "status": status });
        outcome(self.api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Removes the part of the status at a JSON pointer.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn remove_from_status(&self, name: &str, pointer: &str) -> Result<(), Refusal> {
        // By JSON patch: in a merge patch, an object that becomes empty would stay.
        let patch: Patch<Value> = Patch::Json(typed(serde_json::json!([{"op": "remove", "path": pointer}])));
        outcome(self.api.patch_status(name, &PatchParams::default(), &patch).await)
    }

    /// Returns the cells that `kubectl get` prints for an object, by column name. With `wide`, the cells of `-o wide` too.
    pub async fn row(&self, name: &str, wide: bool) -> BTreeMap<String, Value> {
        let ApiResource { group, version, plural, .. } = &self.resource;
        let uri = format!("/apis/{group}/{version}/namespaces/{}/{plural}/{name}", self.tenant);
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let request = Request::get(uri).header(header::ACCEPT, table).body(Vec::new()).expect("a request");
        let table: Table = self.client.request(request).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let cells = table.rows.into_iter().next().expect("a row").cells;
        let columns = table.column_definitions.into_iter().zip(cells);
        columns.filter(|(column, _)| wide || column.priority == 0).map(|(column, cell)| (column.name, cell)).collect()
    }

    async fn attempt(&self, name: &str, spec: &Value, dry_run: bool) -> Result<(), Refusal> {
        let mut object = DynamicObject::new(name, &self.resource);
        object.data = serde_json::json!({ "spec": spec });
        let parameters = PostParams { dry_run, ..PostParams::default() };
        outcome(self.api.create(&parameters, &object).await)
    }
}

fn outcome<T>(answer: kube::Result<T>) -> Result<(), Refusal> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_invalid() || status.is_forbidden() || status.code == 400 => {
            Err(Refusal(status.message))
        }
        Err(other) => panic!("the API server did not decide on the object: {other}"),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    priority: i32,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
}
