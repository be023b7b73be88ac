//! How an API that a Job binds may be called, and what proves who calls it.

use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The headers that a call may set, in lower case.
pub const CALL_HEADERS: [&str; 9] = [
    "accept",
    "accept-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "prefer",
];

/// Headers that the connection needs, in lower case.
const CONNECTION_HEADERS: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header is one that no credential may be sent in: the request itself needs it.
pub fn is_reserved_header(name: &str) -> bool {
    CALL_HEADERS.iter().chain(&CONNECTION_HEADERS).any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// The same as a rule of the API server.
fn header_rule() -> Rule {
    let reserved: Vec<String> =
        CALL_HEADERS.iter().chain(&CONNECTION_HEADERS).map(|header| format!("'{header}'")).collect();
    Rule::new(format!("!(self.lowerAscii() in [{}])", reserved.join(", ")))
        .message("is a header that the request itself needs")
}

/// What an endpoint is sent with each call, so that it knows who calls. The model never sees it, and cannot set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointAuth {
    /// The name of the resource of the type `credential` whose value is sent. It is read anew for each call, so that a
    /// rotated Secret counts at once.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub credential: String,
    /// The header that carries it. Default `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"))]
    #[x_kube(validation = header_rule())]
    pub header: Option<String>,
    /// What stands before the value in the header, such as `Bearer`, with a space after it. Default: nothing. For
    /// `Basic` the value has to be `user:password` in base64 already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[A-Za-z][-A-Za-z0-9_]*$"))]
    pub scheme: Option<String>,
}

impl EndpointAuth {
    /// The header that carries the credential.
    pub fn header(&self) -> &str {
        self.header.as_deref().unwrap_or("Authorization")
    }
}

/// Calls that an endpoint may be sent: any of these methods on any of these paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRule {
    /// The methods.
    #[schemars(length(min = 1, max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub methods: Vec<Method>,
    /// The paths below the URL that the Job binds, such as `/orders/*`. `*` is any text within a segment, and alone at
    /// least one character; a segment `**` is any number of segments, none too. Percent-encoded characters of a call
    /// are compared as what they mean; upper and lower case differ. Queries are not compared.
    #[schemars(
        length(min = 1, max = 16),
        inner(length(min = 1, max = 256), regex(pattern = r"^(/(\*\*|(\*?[^*/?#%\\\s])*\*?))+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub paths: Vec<String>,
}

/// A method of HTTP.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Reads what is said about it only.
    Head,
    /// Does something, or makes something new.
    Post,
    /// Puts something in its place, whole.
    Put,
    /// Changes a part of something.
    Patch,
    /// Removes something.
    Delete,
}

impl Method {
    /// Whether it changes nothing.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}
