//! The API keys of the command line. Each key is sent to one server only.

use crate::error::{Error, Errors};
use crate::run::memory_key::is_one_line;
use crate::run::resources::{Unusable, secret_file};
use bloomery_crds::run::{KeyFile, ModelEndpoint};
use bloomery_http as http;
use bloomery_skills::names::name_fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The option.
const OPTION: &str = "--api-key-file";

/// The keys of a command line.
#[derive(Debug, Default)]
pub struct ApiKeys {
    /// The keys of Models, by name.
    own: BTreeMap<String, KeyFile>,
    /// The key of all other Models.
    common: Option<KeyFile>,
}

impl ApiKeys {
    /// Reads the values of the option: `MODEL=FILE` or `FILE`. Text before a `=` that is not a name belongs to the path.
    ///
    /// # Errors
    /// If a file cannot be used, or a Model has two keys.
    pub fn read(values: &[String]) -> Result<Self, Error> {
        let (mut keys, mut errors) = (Self::default(), Errors::default());
        for value in values {
            let (model, file) = match value.split_once('=').filter(|(model, _)| name_fault(model).is_none()) {
                Some((model, file)) => (Some(model), file),
                None => (None, value.as_str()),
            };
            let key = secret_file(file.as_ref(), OPTION)
                .and_then(check_one_line)
                .map_err(|fault| Error::usage(format!("{OPTION}: {fault}")));
            let Some(key) = errors.keep(key) else { continue };
            let before = match model {
                Some(model) => keys.own.insert(model.to_owned(), key),
                None => keys.common.replace(key),
            };
            if before.is_some() {
                let whose = model.map_or_else(|| "all other Models".to_owned(), |model| format!("the Model {model}"));
                errors.add(Error::usage(format!("{OPTION}: two keys for {whose}. Give one for each, as MODEL=FILE")));
            }
        }
        if errors.is_empty() { Ok(keys) } else { Err(errors.into_error()) }
    }

    /// Returns the key of a Model.
    pub fn get(&self, model: &str) -> Option<&KeyFile> {
        self.own.get(model).or(self.common.as_ref())
    }

    /// Checks that each key is sent to one server.
    ///
    /// # Errors
    /// If a key without a Model would be sent to several servers, or a key names a Model that is not used.
    pub fn check(&self, endpoints: &[ModelEndpoint]) -> Result<(), Error> {
        let known: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        if let Some(unknown) = self.own.keys().find(|name| !known.contains(name.as_str())) {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(Error::usage(format!(
                "{OPTION} {unknown}=...: no Model of that name is used, but {}",
                known.join(", ")
            )));
        }
        let others = endpoints.iter().filter(|endpoint| !self.own.contains_key(&endpoint.name));
        let servers: BTreeSet<String> = others.filter_map(|endpoint| http::origin(&endpoint.base_url)).collect();
        if self.common.is_some() && servers.len() > 1 {
            let servers: Vec<String> = servers.into_iter().collect();
            return Err(Error::usage(format!(
                "{OPTION} would send one key to several servers, {}: give the Model of the key, as MODEL=FILE",
                servers.join(" and ")
            )));
        }
        Ok(())
    }
}

/// Refuses a key that cannot be sent in a header.
fn check_one_line(file: KeyFile) -> Result<KeyFile, Unusable> {
    match fs::read_to_string(&file.path) {
        Ok(key) if is_one_line(&key) => Ok(file),
        Ok(_) | Err(_) => {
            Err(Unusable(format!("the file {} does not hold a key: a key is one line of text.", file.key)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ApiKeys;
    use bloomery_crds::run::ModelEndpoint;
    use bloomery_crds::v1alpha1::ModelProvider;
    use std::fs;

    fn endpoint(name: &str, base_url: &str) -> ModelEndpoint {
        ModelEndpoint {
            name: name.to_owned(),
            provider: ModelProvider::Openai,
            model: "m".to_owned(),
            base_url: base_url.to_owned(),
            timeout_seconds: 1,
            context_window: 1,
            max_output_tokens: None,
            api_key: None,
            ca: None,
            proxy: None,
            fallback: Vec::new(),
        }
    }

    #[test]
    fn a_key_goes_to_one_server() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let file = dir.path().join(name);
            fs::write(&file, format!("sk-{name}")).unwrap();
            file.display().to_string()
        };
        let (one, other) = (file("one"), file("other=x"));
        let of_b = format!("b={other}");
        let read = |values: &[&str]| ApiKeys::read(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>());
        let told = |keys: Result<ApiKeys, crate::error::Error>, endpoints: &[ModelEndpoint]| {
            keys.and_then(|keys| keys.check(endpoints)).map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        let apart = [endpoint("a", "https://a.example/v1"), endpoint("b", "https://b.example/v1")];
        let together = [endpoint("a", "https://a.example/v1"), endpoint("b", "https://a.example/v2")];

        assert_eq!(told(read(&[&one]), &together), "");
        assert_eq!(told(read(&[&one, &of_b]), &apart), "");
        let keys = read(&[&one, &of_b]).unwrap();
        assert_eq!((&keys.get("a").unwrap().path, &keys.get("b").unwrap().path), (&one, &other));
        // A path may have a `=` too.
        assert_eq!(read(&[&other]).unwrap().get("b").unwrap().path, other);

        let several = told(read(&[&one]), &apart);
        assert!(
            several.contains("several servers, https://a.example and https://b.example: give the Model"),
            "{several}"
        );
        let unknown = told(read(&[&format!("c={one}")]), &apart);
        assert!(unknown.contains("c=...: no Model of that name is used, but a, b"), "{unknown}");
        fs::write(&one, "sk-1\nsk-2").unwrap();
        let lines = told(read(&[&one]), &apart);
        assert!(lines.contains("a key is one line of text") && !lines.contains("sk-"), "{lines}");
        fs::write(&one, "sk-one").unwrap();
        for twice in [[one.as_str(), one.as_str()], [of_b.as_str(), of_b.as_str()]] {
            assert!(told(read(&twice), &apart).contains("two keys for"));
        }
    }
}
