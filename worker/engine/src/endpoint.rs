//! The APIs that a Job binds: what a call of one becomes, and whether the Skill's rules allow it (`docs/explanation/design.md`, section 3).
//!
//! The gate that rules on a call and the worker that makes it ask the same [`plan`], so what was ruled on is what is sent.

mod address;
mod allowed;
mod asked;

pub use allowed::summary;

use address::Base;
use asked::Asked;
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::{
    EndpointAuth, EndpointRule, Method, ResourceDeclaration, ResourceType, is_reserved_header,
};
use serde_json::Value;
use strum::IntoEnumIterator;

/// The longest URL that is called, in bytes.
const MAX_URL: usize = 8 * 1024;

/// An API that a Job binds.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The name that the Skill gives it.
    pub name: String,
    /// Where it is, or why no path can be put at the end of its URL.
    base: Result<Base, String>,
    auth: Option<Auth>,
    rules: Option<Vec<EndpointRule>>,
}

/// What proves who calls. The value itself is read when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The header that carries it.
    pub header: String,
    /// What stands before the value, its space included; or nothing.
    pub prefix: String,
    /// The name of the credential.
    pub credential: String,
    /// Where the value is; none where the Job does not bind it.
    pub file: Option<KeyFile>,
}

/// A call as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The headers that the call asks for, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    /// What proves who calls, and where its value is.
    pub auth: Option<(Auth, KeyFile)>,
}

/// The endpoints among what a Job binds, in the order in which it does; one that the Skill does not declare is none.
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
    /// The methods that any call of it may have, in the order in which they are declared.
    pub fn methods(&self) -> Vec<Method> {
        Method::iter().filter(|method| allowed::any(self.rules.as_deref(), *method)).collect()
    }

    /// Whether calls of it that only read, or calls that may change something, are allowed at all.
    fn serves(&self, reads_only: bool) -> bool {
        self.methods().iter().any(|method| method.is_read() == reads_only)
    }

    /// Why no call of it can be made at all.
    pub fn fault(&self) -> Option<String> {
        self.base().err()
    }

    fn base(&self) -> Result<&Base, String> {
        let told = |why: &String| format!("the URL of `{}` cannot be called with a path: {why}", self.name);
        self.base.as_ref().map_err(told)
    }

    /// The rules, for whoever calls it.
    pub fn rules(&self) -> Option<&[EndpointRule]> {
        self.rules.as_deref()
    }

    /// What proves who calls, with where its value is; nothing where calls need no proof.
    fn proof(&self) -> Result<Option<(Auth, KeyFile)>, String> {
        let Some(auth) = &self.auth else { return Ok(None) };
        let (endpoint, credential) = (&self.name, &auth.credential);
        if is_reserved_header(&auth.header) {
            return Err(format!(
                "the Skill's auth of `{endpoint}` names the header {}, which a request needs",
                auth.header
            ));
        }
        match &auth.file {
            Some(file) => Ok(Some((auth.clone(), file.clone()))),
            None => {
                Err(format!("`{endpoint}` is called with the credential `{credential}`, which this Job does not bind"))
            }
        }
    }
}

/// What is bound as an endpoint and cannot be called by these tools, a sentence each.
pub fn remarks(declared: &[ResourceDeclaration], bound: &[BoundResource]) -> Vec<String> {
    let endpoints = endpoints(declared, bound);
    endpoints.iter().filter_map(Endpoint::fault).map(|fault| format!("{fault}.")).collect()
}

/// The endpoints that a tool is for: one that only reads, or one that may change something.
pub fn serving(endpoints: &[Endpoint], reads_only: bool) -> Vec<&Endpoint> {
    endpoints.iter().filter(|endpoint| endpoint.serves(reads_only)).collect()
}

/// What a call becomes. `reads_only` refuses every method that may change something.
///
/// # Errors
/// Why it is not made, for the model: it would leave its endpoint, the Skill's rules do not allow it, or it cannot be read.
pub fn plan(endpoints: &[Endpoint], arguments: &Value, reads_only: bool) -> Result<PlannedRequest, String> {
    let asked = Asked::read(arguments)?;
    let endpoint = chosen(&serving(endpoints, reads_only), asked.resource.as_deref())?;
    let base = endpoint.base()?;
    let method = asked.method(reads_only)?;
    let path = asked.path()?;
    if !allowed::allows(endpoint.rules(), method, path.segments()) {
        return Err(format!(
            "the Skill's rules for `{}` allow no {method} of {path}; they allow {}",
            endpoint.name,
            summary(endpoint.rules())
        ));
    }
    let url = format!("{}{}", base.join(&path), asked.query()?);
    if url.len() > MAX_URL {
        return Err(format!("the URL has {} bytes, and at most {MAX_URL} are sent", url.len()));
    }
    let auth = endpoint.proof()?;
    let headers = asked.headers(auth.as_ref().map(|(auth, _)| auth.header.as_str()))?;
    let (headers, body) = asked.body(method, headers)?;
    Ok(PlannedRequest { method, url, headers, body, auth })
}

fn chosen<'e>(endpoints: &[&'e Endpoint], name: Option<&str>) -> Result<&'e Endpoint, String> {
    let names = || endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect::<Vec<_>>().join(", ");
    match (endpoints, name) {
        ([], _) => Err("the Job binds no endpoint that this tool may call".to_owned()),
        ([only], None) => Ok(only),
        (_, None) => Err(format!("resource says which endpoint is meant: {}", names())),
        (_, Some(name)) => endpoints
            .iter()
            .copied()
            .find(|endpoint| endpoint.name == name)
            .ok_or_else(|| format!("there is no such endpoint for this tool; there are {}", names())),
    }
}

#[cfg(test)]
mod tests;
