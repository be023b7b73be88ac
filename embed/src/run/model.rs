//! The models of a run, with their addresses and keys.

use crate::error::{Error, Errors};
use crate::run::api_keys::ApiKeys;
use crate::run::credential;
use crate::run::model_file;
use crate::run::options::ModelOptions;
use crate::run::ram_key::{RamKey, is_one_line};
use crate::run::resources::secret_file;
use crate::run::vendor::{self, Env, Vendor};
use bloomery_crds::run::{KeyFile, ModelEndpoint};
use bloomery_crds::v1alpha1::{ModelProvider, ModelSpec};
use bloomery_http::{self as http, ClientOptions};
use std::collections::BTreeSet;
use std::time::Duration;

/// The models of a run, with their keys.
#[derive(Debug)]
pub struct Models {
    /// One endpoint for each name that the Skill uses.
    pub endpoints: Vec<ModelEndpoint>,
    /// Keeps the keys from the environment readable.
    _ram_keys: Vec<RamKey>,
}

impl Models {
    /// Returns the models of a child: those of its parent by name, or else the first one of its parent.
    pub fn for_child(names: &[&str], of_parent: &[ModelEndpoint]) -> Self {
        let of_name = |name: &&str| {
            let endpoint = of_parent.iter().find(|endpoint| endpoint.name == *name).or(of_parent.first())?;
            Some(ModelEndpoint { name: (*name).to_owned(), ..endpoint.clone() })
        };
        // The others may be fallbacks.
        let others = of_parent.iter().filter(|endpoint| !names.contains(&endpoint.name.as_str())).cloned();
        Self { endpoints: names.iter().filter_map(of_name).chain(others).collect(), _ram_keys: Vec::new() }
    }
}

/// Finds the models that a Skill names. If `names` is `None` because the Skill could not be read, finds the models of the
/// options, so that all errors can be reported at once.
///
/// # Errors
/// If a model or its key cannot be found.
pub fn find(options: &ModelOptions, names: Option<&[&str]>, env: Env<'_>) -> Result<Models, Error> {
    let mut errors = Errors::default();
    let keys = errors.collect(ApiKeys::read(&options.api_key_file));
    let found = errors.collect(if let Some(file) = options.model.as_deref().filter(|model| is_file(model)) {
        let origin = format!("`options.model.model` {file}");
        model_file::endpoints(file, &origin, options, names).map(|endpoints| (endpoints, origin))
    } else {
        let for_each_name = |(endpoint, origin): (ModelEndpoint, &str)| {
            let names = names.unwrap_or(&["default"]).iter();
            let endpoints = names.map(|name| ModelEndpoint { name: (*name).to_owned(), ..endpoint.clone() }).collect();
            (endpoints, origin.to_owned())
        };
        from_options(options, env).map(for_each_name)
    });
    let (Some(keys), Some((endpoints, origin))) = (keys, found) else { return Err(errors.into_error()) };
    let routes: BTreeSet<_> = endpoints.iter().map(|endpoint| (&endpoint.base_url, &endpoint.proxy)).collect();
    for (base_url, proxy) in routes {
        if let Some(fault) = credential::in_url(base_url) {
            errors.add(Error::invalid(format!(
                "{origin}: the URL of the model {fault}, and would be stored in clear text: write the key to a file, and name \
                 the file with `options.model.api_key_file`"
            )));
            continue;
        }
        // Checks the address now. The run would report an invalid address as a server that does not respond.
        let route = ClientOptions { proxy: proxy.clone(), ..ClientOptions::default() };
        let checked = http::client(base_url, Duration::ZERO, route);
        errors.collect(checked.map_err(|error| Error::invalid(format!("{origin}: {error}"))));
    }
    if !errors.is_empty() {
        return Err(errors.into_error());
    }
    with_keys(endpoints, &keys, env)
}

/// Returns the models of a resumed Job with the current keys. `endpoints` are those of its run document.
///
/// # Errors
/// If a key cannot be found.
pub fn reload(endpoints: Vec<ModelEndpoint>, options: &ModelOptions, env: Env<'_>) -> Result<Models, Error> {
    with_keys(endpoints, &ApiKeys::read(&options.api_key_file)?, env)
}

/// Returns whether the value of `options.model.model` is a file, and not the name of a model.
pub fn is_file(model: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| model.ends_with(end))
}

/// Returns the model that the options and the environment select, and what names its address in messages.
fn from_options(options: &ModelOptions, env: Env<'_>) -> Result<(ModelEndpoint, &'static str), Error> {
    let vendor = vendor(options, env)?;
    let model =
        options.model.clone().or_else(|| env(vendor.model_variable)).unwrap_or_else(|| vendor.default_model.to_owned());
    let (base_url, origin) = match &options.model_url {
        Some(url) => (url.clone(), "`options.model.model_url`"),
        None if env(vendor.url_variable).is_some() => (vendor.effective_url(env), vendor.url_variable),
        None => (vendor.url.to_owned(), "the model"),
    };
    let endpoint = ModelEndpoint {
        name: String::new(),
        provider: vendor.provider,
        model,
        base_url,
        timeout_seconds: ModelSpec::DEFAULT_TIMEOUT_SECONDS,
        context_window: ModelSpec::DEFAULT_CONTEXT_WINDOW,
        max_output_tokens: None,
        api_key: None,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    };
    Ok((endpoint, origin))
}

/// Selects the provider: by `options.model.provider`, the name of the model, the address, or the variables of the environment, in this order.
fn vendor(options: &ModelOptions, env: Env<'_>) -> Result<&'static Vendor, Error> {
    if let Some(name) = &options.provider {
        return vendor::by_name(name).ok_or_else(|| {
            let known: Vec<&str> = vendor::ALL.iter().map(|vendor| vendor.name).collect();
            Error::invalid(format!("`options.model.provider` must be one of {}", known.join(", ")))
        });
    }
    let by_model = options.model.as_deref().and_then(vendor::by_model);
    // Most servers at other addresses speak the protocol of OpenAI.
    let by_address = options.model_url.is_some().then(|| vendor::by_provider(ModelProvider::Openai)).flatten();
    let by_variable =
        vendor::ALL.iter().find(|vendor| env(vendor.key_variable).is_some() || env(vendor.url_variable).is_some());
    by_model.or(by_address).or(by_variable).ok_or_else(|| {
        let keys: Vec<&str> = vendor::ALL.iter().map(|vendor| vendor.key_variable).collect();
        Error::invalid(format!(
            "no model is configured: set {}, or name a server that needs no key with `options.model.model_url` (docs/how-to/run-locally.md describes a \
             scripted one)",
            keys.join(" or ")
        ))
    })
}

/// Adds the keys to the models. A key from a file is sent to the server of its Model. A key from the environment is sent only
/// to the address of its provider.
fn with_keys(endpoints: Vec<ModelEndpoint>, keys: &ApiKeys, env: Env<'_>) -> Result<Models, Error> {
    keys.check(&endpoints)?;
    let (mut with_key, mut ram_keys) = (Vec::new(), Vec::new());
    for endpoint in endpoints {
        let api_key = match (keys.get(&endpoint.name), &endpoint.api_key) {
            (Some(file), _) => Some(file.clone()),
            (None, Some(file)) => Some(check_readable(file)?),
            (None, None) => from_environment(&endpoint, env, &mut ram_keys)?,
        };
        with_key.push(ModelEndpoint { api_key, ..endpoint });
    }
    Ok(Models { endpoints: with_key, _ram_keys: ram_keys })
}

/// Checks that the key file of a resumed Job can still be read.
fn check_readable(file: &KeyFile) -> Result<KeyFile, Error> {
    secret_file(file.path.as_ref(), &file.secret).map_err(|error| Error::invalid(error.to_string()))
}

/// Returns the key of a model from the environment, if the environment has a key for the address of the model. Adds new keys to
/// `ram_keys`.
fn from_environment(
    endpoint: &ModelEndpoint,
    env: Env<'_>,
    ram_keys: &mut Vec<RamKey>,
) -> Result<Option<KeyFile>, Error> {
    let Some(vendor) = vendor::by_provider(endpoint.provider).filter(|vendor| vendor.owns_url(&endpoint.base_url, env))
    else {
        return Ok(None);
    };
    let Some(value) = env(vendor.key_variable).filter(|value| !value.trim().is_empty()) else {
        if endpoint.base_url != vendor.url {
            // Another server of the provider's protocol may need no key.
            return Ok(None);
        }
        let message = format!(
            "{} requires a key: set {}, or use `options.model.api_key_file`",
            endpoint.base_url, vendor.key_variable
        );
        return Err(Error::invalid(message));
    };
    if !is_one_line(&value) {
        let message =
            format!("{} holds a line break or another control character: a key is one line", vendor.key_variable);
        return Err(Error::invalid(message));
    }
    if let Some(key) = ram_keys.iter().find(|key| key.is_from(vendor.key_variable)) {
        return Ok(Some(key.key_file()));
    }
    let key = RamKey::new(vendor.key_variable, value.trim()).map_err(|error| {
        Error::failed(format!("the key in {} cannot be stored in RAM: {error}", vendor.key_variable))
    })?;
    let file = key.key_file();
    ram_keys.push(key);
    Ok(Some(file))
}
