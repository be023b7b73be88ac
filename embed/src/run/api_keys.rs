//! The API keys that the options name. Each key is sent to one server only.

use crate::error::{Error, Errors};
use crate::run::ram_key::is_one_line;
use crate::run::resources::{InvalidValue, secret_file};
use bloomery_crds::run::{KeyFile, ModelEndpoint};
use bloomery_http as http;
use bloomery_skills::names::name_fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The option that names API keys.
const OPTION: &str = "`options.model.api_key_file`";

/// The name of a key in the parts of a Job that name the Secret of a key. Run documents have it, so it stays the same.
const LABEL: &str = "--api-key-file";

/// The files with the keys that the options name.
#[derive(Debug, Default)]
pub struct ApiKeys {
    /// The keys of single Models, by the name of the Model.
    of_model: BTreeMap<String, KeyFile>,
    /// The key of all other Models.
    default: Option<KeyFile>,
}

impl ApiKeys {
    /// Reads the values of the option, which are `MODEL=FILE` or `FILE`. If the text before `=` is not a valid name, the whole
    /// value is a path.
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
            let key = secret_file(file.as_ref(), LABEL)
                .and_then(check_one_line)
                .map_err(|fault| Error::invalid(format!("{OPTION}: {fault}")));
            let Some(key) = errors.collect(key) else { continue };
            let previous = match model {
                Some(model) => keys.of_model.insert(model.to_owned(), key),
                None => keys.default.replace(key),
            };
            if previous.is_some() {
                let models = model.map_or_else(|| "all other Models".to_owned(), |model| format!("the Model {model}"));
                errors.add(Error::invalid(format!(
                    "{OPTION}: two keys for {models}. Give one key for each Model, as MODEL=FILE"
                )));
            }
        }
        errors.into_result(keys)
    }

    /// Returns the key of a Model.
    pub fn get(&self, model: &str) -> Option<&KeyFile> {
        self.of_model.get(model).or(self.default.as_ref())
    }

    /// Checks that the default key is sent to one server only, and that each other key belongs to a Model in use.
    ///
    /// # Errors
    /// If the default key would be sent to several servers, or a key names a Model that is not used.
    pub fn check(&self, endpoints: &[ModelEndpoint]) -> Result<(), Error> {
        let known: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        if let Some(unknown) = self.of_model.keys().find(|name| !known.contains(name.as_str())) {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(Error::invalid(format!(
                "{OPTION} {unknown}=...: the run uses no Model of that name. It uses {}",
                known.join(", ")
            )));
        }
        let with_default_key = endpoints.iter().filter(|endpoint| !self.of_model.contains_key(&endpoint.name));
        let servers: BTreeSet<String> =
            with_default_key.filter_map(|endpoint| http::origin(&endpoint.base_url)).collect();
        if self.default.is_some() && servers.len() > 1 {
            let servers: Vec<String> = servers.into_iter().collect();
            return Err(Error::invalid(format!(
                "{OPTION} would send one key to several servers, {}: give the Model of the key, as MODEL=FILE",
                servers.join(" and ")
            )));
        }
        Ok(())
    }
}

/// Checks that a key can be sent in a header.
fn check_one_line(file: KeyFile) -> Result<KeyFile, InvalidValue> {
    match fs::read_to_string(&file.path) {
        Ok(key) if is_one_line(&key) => Ok(file),
        Ok(_) | Err(_) => {
            Err(InvalidValue(format!("the file {} does not hold a key: a key is one line of text.", file.key)))
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
    fn a_key_is_sent_to_one_server_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let file = dir.path().join(name);
            fs::write(&file, format!("sk-{name}")).unwrap();
            file.display().to_string()
        };
        let (one, other) = (file("one"), file("other=x"));
        let of_b = format!("b={other}");
        let read = |values: &[&str]| ApiKeys::read(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>());
        let fault = |keys: Result<ApiKeys, crate::error::Error>, endpoints: &[ModelEndpoint]| {
            keys.and_then(|keys| keys.check(endpoints)).map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        let apart = [endpoint("a", "https://a.example/v1"), endpoint("b", "https://b.example/v1")];
        let together = [endpoint("a", "https://a.example/v1"), endpoint("b", "https://a.example/v2")];

        assert_eq!(fault(read(&[&one]), &together), "");
        assert_eq!(fault(read(&[&one, &of_b]), &apart), "");
        let keys = read(&[&one, &of_b]).unwrap();
        assert_eq!((&keys.get("a").unwrap().path, &keys.get("b").unwrap().path), (&one, &other));
        // A path may have a `=` too.
        assert_eq!(read(&[&other]).unwrap().get("b").unwrap().path, other);

        let several = fault(read(&[&one]), &apart);
        assert!(
            several.contains("several servers, https://a.example and https://b.example: give the Model"),
            "{several}"
        );
        let unknown = fault(read(&[&format!("c={one}")]), &apart);
        assert!(unknown.contains("c=...: the run uses no Model of that name. It uses a, b"), "{unknown}");
        fs::write(&one, "sk-1\nsk-2").unwrap();
        let lines = fault(read(&[&one]), &apart);
        assert!(lines.contains("a key is one line of text") && !lines.contains("sk-"), "{lines}");
        fs::write(&one, "sk-one").unwrap();
        for twice in [[one.as_str(), one.as_str()], [of_b.as_str(), of_b.as_str()]] {
            assert!(fault(read(&twice), &apart).contains("two keys for"));
        }
    }
}
