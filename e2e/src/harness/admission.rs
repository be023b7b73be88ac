//! What the API server takes, refuses and shows of our kinds.

use std::collections::BTreeMap;

use axum::http::{Request, header};
use bloomery_crds::v1alpha1::{Approval, Job, Model, Skill};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Deserialize;
use serde_json::Value;

use super::tenant::Tenant;

/// The objects of one of our kinds, as YAML has them: with fields that our types could not say.
pub struct Door {
    api: Api<DynamicObject>,
    resource: ApiResource,
    tenant: String,
    client: kube::Client,
}

impl Tenant {
    /// The way in for Skills.
    pub fn skills(&self) -> Door {
        self.door::<Skill>()
    }

    /// The way in for Jobs.
    pub fn jobs(&self) -> Door {
        self.door::<Job>()
    }

    /// The way in for Models.
    pub fn models(&self) -> Door {
        self.door::<Model>()
    }

    /// The way in for Approvals.
    pub fn approvals(&self) -> Door {
        self.door::<Approval>()
    }

    fn door<K: Resource<DynamicType = ()>>(&self) -> Door {
        let resource = ApiResource::erase::<K>(&());
        let client = self.cluster.client.clone();
        let api = Api::namespaced_with(client.clone(), &self.namespace, &resource);
        Door { api, resource, tenant: self.namespace.clone(), client }
    }
}

impl Door {
    /// Makes an object, and fails if the API server would not have it.
    pub async fn create(&self, name: &str, spec: &Value) {
        if let Err(refusal) = self.attempt(name, spec, false).await {
            panic!("{name} should be taken: {refusal}");
        }
    }

    /// Asks whether an object would be taken, and fails if not.
    pub async fn takes(&self, name: &str, spec: &Value) {
        if let Err(refusal) = self.attempt(name, spec, true).await {
            panic!("{name} should be taken: {refusal}");
        }
    }

    /// Asks whether an object would be taken; gives the sentence that refuses it, and fails if it would be.
    pub async fn refuses(&self, name: &str, spec: &Value) -> String {
        match self.attempt(name, spec, true).await {
            Err(refusal) => refusal,
            Ok(()) => panic!("{name} should be refused: {spec:#}"),
        }
    }

    /// Changes an object, as `kubectl patch --type merge` does.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn change(&self, name: &str, patch: &Value) -> Result<(), String> {
        said(self.api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Changes the status of an object, as any controller with the right to do so could.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn change_status(&self, name: &str, status: &Value) -> Result<(), String> {
        let patch = serde_json::json!({ "status": status });
        said(self.api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Takes a part of the status away, by its JSON pointer.
    ///
    /// # Errors
    /// The sentence of the API server that refuses it.
    pub async fn remove_from_status(&self, name: &str, pointer: &str) -> Result<(), String> {
        // By JSON patch: in a merge patch, an object that becomes empty would stay.
        let patch: kube::api::Patch<Value> = Patch::Json(
            serde_json::from_value(serde_json::json!([{"op": "remove", "path": pointer}]))
                .map_err(|error| error.to_string())?,
        );
        said(self.api.patch_status(name, &PatchParams::default(), &patch).await)
    }

    /// The row that `kubectl get` prints of an object, by column; with `wide`, what `-o wide` adds.
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

    async fn attempt(&self, name: &str, spec: &Value, dry_run: bool) -> Result<(), String> {
        let mut object = DynamicObject::new(name, &self.resource);
        object.data = serde_json::json!({ "spec": spec });
        let parameters = PostParams { dry_run, ..PostParams::default() };
        said(self.api.create(&parameters, &object).await)
    }
}

fn said<T>(answer: kube::Result<T>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_invalid() || status.code == 400 => Err(status.message),
        Err(other) => panic!("the API server should have judged the object: {other}"),
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
