//! Suggestions: YAML comments that follow the manifest of an import. A person completes them, and removes the `#`.

/// Returns comments about an MCP server that is not imported, and why. Without `#`, one of `fields` is a field of `spec`.
pub(super) fn of_server(reason: &str, fields: &[String]) -> String {
    let why = format!(
        "The MCP server is not imported: {reason}. Until one of these fields is set, the Skill has only core tools:"
    );
    let lines: Vec<&str> = std::iter::once(&why).chain(fields).map(String::as_str).collect();
    format!("  # {}\n", lines.join("\n  # "))
}

/// Returns the manifest of a Model as comments. `model` is the name of the model at its provider.
pub(super) fn of_model(name: &str, model: &str, namespace: Option<&str>) -> String {
    let (provider, url) = if model.starts_with("claude") {
        ("anthropic", "https://api.anthropic.com/v1")
    } else {
        ("openai", "https://api.openai.com/v1")
    };
    let namespace = namespace.map(|namespace| format!(", namespace: {namespace}")).unwrap_or_default();
    format!(
        "# ---\n\
         # The Skill needs this Model. Check provider, baseUrl and apiKey, unless the Model exists already:\n\
         # apiVersion: bloomery.dev/v1alpha1\n\
         # kind: Model\n\
         # metadata: {{name: {name}{namespace}}}\n\
         # spec:\n\
         #   provider: {provider}\n\
         #   model: {model:?}\n\
         #   baseUrl: {url}\n\
         #   apiKey: {{secretKeyRef: {{name: llm, key: token}}}}\n"
    )
}
