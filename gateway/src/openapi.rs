//! The description of the API: a document of `OpenAPI` 3.1, which is generated from the types of requests and responses.

mod operation;
mod operations;
mod schemas;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemas::Schemas;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The document as text.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));

/// Returns the document. It is the same for everybody, and says nothing about a tenant.
pub(crate) async fn serve() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// Returns the document.
fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for operation in operations::all(&mut schemas) {
        let described = operation.describe(&mut schemas);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method.to_owned(), described);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bloomery gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Starts Jobs of Skills, talks to them and shows them. All rights are those of the caller.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.named(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The routes of the API in the source of the router, as `method path`. Other routes are the page and its assets.
    fn routes() -> BTreeSet<String> {
        let source = include_str!("lib.rs");
        let routes = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once("\", "));
        let of_api =
            routes.filter(|(path, _)| ["/api/", "/v1/", "/openapi.json"].iter().any(|api| path.starts_with(api)));
        let methods = of_api.flat_map(|(path, handlers)| {
            let methods = ["get", "post", "put", "patch", "delete"].into_iter();
            methods
                .filter(move |method| handlers.contains(&format!("{method}(")))
                .map(move |method| format!("{method} {path}"))
        });
        methods.collect()
    }

    #[test]
    fn the_document_has_exactly_the_routes_of_the_router() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let described = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        });
        assert_eq!(described.collect::<BTreeSet<_>>(), routes());
        assert!(routes().len() > 10, "{:?}", routes());
    }

    #[test]
    fn each_reference_has_a_schema() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str));
                    fields.values().for_each(|field| references(field, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn the_document_is_as_committed() {
        insta::assert_snapshot!(DOCUMENT.as_str());
    }
}
