//! The APIs that a Job binds: the request of a call, and whether the Skill's rules allow it
//! (`docs/explanation/design.md`, section 3).
//!
//! The gate and the worker both use [`build_request`]: the worker sends exactly the request that the gate has allowed.

mod address;
mod allowed;
mod arguments;
mod error;

pub use allowed::summary;
pub use error::Error;

use address::Base;
use arguments::CallArguments;
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::{
    EndpointAuth, EndpointRule, Method, ResourceDeclaration, ResourceType, is_reserved_header,
};
use serde_json::Value;
use strum::IntoEnumIterator;

/// The longest URL of a request, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// An API that a Job binds.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The name in the Skill.
    pub name: String,
    /// The URL, or the reason why no path can be appended to it.
    base: Result<Base, Error>,
    auth: Option<Auth>,
    rules: Option<Vec<EndpointRule>>,
}

/// The header that authenticates calls. The worker reads its value when it sends a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The name of the header.
    pub header: String,
    /// The text before the value, such as `Bearer ` with its space. It may be empty.
    pub prefix: String,
    /// The name of the credential.
    pub credential: String,
    /// The file with the value; none if the Job does not bind the credential.
    pub file: Option<KeyFile>,
}

/// The request of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The complete URL.
    pub url: String,
    /// The headers of the call, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    /// The header that authenticates the call, and the file with its value.
    pub auth: Option<(Auth, KeyFile)>,
}

/// Returns the bound endpoints that the Skill declares, in the order of the Job.
pub fn endpoints(declared: &[ResourceDeclaration], bound: &[BoundResource]) -> Vec<Endpoint> {
    let endpoint = |resource: &BoundResource| {
        let (ResourceType::ApiEndpoint, ResourceSource::Value(url)) = (resource.kind, &resource.source) else {
            return None;
        };
        let declaration = declared.iter().find(|declared| declared.name == resource.name)?;
        Some(Endpoint {
            name: resource.name.clone(),
            base: Base::parse(url),
            auth: declaration.auth.as_ref().map(|auth| Auth::new(auth, bound)),
            rules: declaration.rules.clone(),
        })
    };
    bound.iter().filter_map(endpoint).collect()
}

impl Auth {
    fn new(auth: &EndpointAuth, bound: &[BoundResource]) -> Self {
        let file = bound.iter().find_map(|resource| match &resource.source {
            ResourceSource::Secret(file)
                if resource.kind == ResourceType::Credential && resource.name == auth.credential =>
            {
                Some(file.clone())
            }
            _ => None,
        });
        Self {
            header: auth.header().to_owned(),
            prefix: auth.scheme.as_ref().map(|scheme| format!("{scheme} ")).unwrap_or_default(),
            credential: auth.credential.clone(),
            file,
        }
    }
}

impl Endpoint {
    /// Returns the methods that the rules allow on at least one path.
    pub fn methods(&self) -> Vec<Method> {
        Method::iter().filter(|method| allowed::allows_some_path(self.rules.as_deref(), *method)).collect()
    }

    /// Returns whether the rules allow a method that only reads or, if `reads_only` is false, a method that may change something.
    fn allows_any(&self, reads_only: bool) -> bool {
        self.methods().iter().any(|method| method.is_read() == reads_only)
    }

    /// Returns the reason why no call is possible, if there is one.
    pub fn error(&self) -> Option<Error> {
        self.base().err()
    }

    fn base(&self) -> Result<&Base, Error> {
        let with_name =
            |error: &Error| format!("the URL of `{}` cannot be called with a path: {error}", self.name).into();
        self.base.as_ref().map_err(with_name)
    }

    /// The rules of the endpoint; none if the Skill declares none.
    pub fn rules(&self) -> Option<&[EndpointRule]> {
        self.rules.as_deref()
    }

    /// Returns the header that authenticates calls and the file with its value, or nothing if calls need none.
    fn authentication(&self) -> Result<Option<(Auth, KeyFile)>, Error> {
        let Some(auth) = &self.auth else { return Ok(None) };
        let (endpoint, credential) = (&self.name, &auth.credential);
        if is_reserved_header(&auth.header) {
            return Err(format!(
                "the Skill's auth of `{endpoint}` names the header {}, which a request needs",
                auth.header
            )
            .into());
        }
        match &auth.file {
            Some(file) => Ok(Some((auth.clone(), file.clone()))),
            None => {
                Err(format!("`{endpoint}` is called with the credential `{credential}`, which this Job does not bind")
                    .into())
            }
        }
    }
}

/// Returns a sentence for each bound endpoint that cannot be called.
pub fn remarks(declared: &[ResourceDeclaration], bound: &[BoundResource]) -> Vec<String> {
    let endpoints = endpoints(declared, bound);
    endpoints.iter().filter_map(Endpoint::error).map(|error| format!("{error}.")).collect()
}

/// Returns the endpoints that `http_get` may call or, if `reads_only` is false, those that `http_request` may call.
pub fn endpoints_for(endpoints: &[Endpoint], reads_only: bool) -> Vec<&Endpoint> {
    endpoints.iter().filter(|endpoint| endpoint.allows_any(reads_only)).collect()
}

/// Returns the request of a call. With `reads_only`, every method that may change something is an error.
///
/// # Errors
/// If the call would leave its endpoint, the Skill's rules do not allow it, its arguments are invalid, or the Job does not bind
/// its credential.
pub fn build_request(endpoints: &[Endpoint], arguments: &Value, reads_only: bool) -> Result<ApiRequest, Error> {
    let call = CallArguments::read(arguments)?;
    let endpoint = choose(&endpoints_for(endpoints, reads_only), call.resource.as_deref())?;
    let base = endpoint.base()?;
    let method = call.method(reads_only)?;
    let path = call.path()?;
    if !allowed::allows(endpoint.rules(), method, path.segments()) {
        return Err(format!(
            "the Skill's rules for `{}` allow no {method} of {path}; they allow {}",
            endpoint.name,
            summary(endpoint.rules())
        )
        .into());
    }
    let url = format!("{}{}", base.join(&path), call.query()?);
    if url.len() > MAX_URL_BYTES {
        return Err(format!("the URL has {} bytes, and at most {MAX_URL_BYTES} are allowed", url.len()).into());
    }
    let auth = endpoint.authentication()?;
    let headers = call.headers(auth.as_ref().map(|(auth, _)| auth.header.as_str()))?;
    let (headers, body) = call.body(method, headers)?;
    Ok(ApiRequest { method, url, headers, body, auth })
}

/// Returns the endpoint that a call names, or the only endpoint if the call names none.
fn choose<'e>(endpoints: &[&'e Endpoint], name: Option<&str>) -> Result<&'e Endpoint, Error> {
    let names = || endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect::<Vec<_>>().join(", ");
    match (endpoints, name) {
        ([], _) => Err("the Job binds no endpoint that this tool may call".into()),
        ([only], None) => Ok(only),
        (_, None) => Err(format!("resource must name one of the endpoints {}", names()).into()),
        (_, Some(name)) => endpoints
            .iter()
            .copied()
            .find(|endpoint| endpoint.name == name)
            .ok_or_else(|| format!("this tool has no such endpoint; it has {}", names()).into()),
    }
}

#[cfg(test)]
mod tests;
