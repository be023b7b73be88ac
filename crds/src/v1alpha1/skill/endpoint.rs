//! The allowed calls of a bound API, and its authentication.

use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The headers that a call of the model can set, in lower case.
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

/// The headers that the HTTP connection sets, in lower case.
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

/// Returns whether a header cannot carry a credential, because the request itself uses it.
pub fn is_reserved_header(name: &str) -> bool {
    CALL_HEADERS.iter().chain(&CONNECTION_HEADERS).any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Returns the CEL rule that refuses the headers of [`is_reserved_header`].
pub(super) fn header_rule() -> Rule {
    let reserved: Vec<String> =
        CALL_HEADERS.iter().chain(&CONNECTION_HEADERS).map(|header| format!("'{header}'")).collect();
    Rule::new(format!("!(self.lowerAscii() in [{}])", reserved.join(", ")))
        .message("is a header that the request itself uses")
}

/// The authentication of calls to an API. The model cannot see or set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointAuth {
    /// The name of a resource of type `credential`. Its value is sent with each call. The worker reads it before each call,
    /// so a rotated Secret takes effect at once.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub credential: String,
    /// The header that carries the value. Default: `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"))]
    #[x_kube(validation = header_rule())]
    pub header: Option<String>,
    /// The scheme before the value, such as `Bearer`, separated by a space. Default: none. For `Basic`, the value must be
    /// `user:password` in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[A-Za-z][-A-Za-z0-9_]*$"))]
    pub scheme: Option<String>,
}

impl EndpointAuth {
    /// Returns the header that carries the credential.
    pub fn header(&self) -> &str {
        self.header.as_deref().unwrap_or("Authorization")
    }
}

/// A set of allowed calls: each of the methods on each of the paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRule {
    /// The methods.
    #[schemars(length(min = 1, max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub methods: Vec<Method>,
    /// The paths below the bound URL, such as `/orders/*`. `*` matches any text within a segment; a segment `*` matches at least
    /// one character. A segment `**` matches any number of segments, including none. Percent-encoded characters of a call are
    /// decoded before the comparison. Case matters. Queries are ignored.
    #[schemars(
        length(min = 1, max = 16),
        inner(length(min = 1, max = 256), regex(pattern = r"^(/(\*\*|(\*?[^*/?#%\\\s])*\*?))+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub paths: Vec<String>,
}

/// An HTTP method.
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
    /// Reads a resource.
    Get,
    /// Reads the headers of a resource.
    Head,
    /// Creates a resource, or starts an action.
    Post,
    /// Replaces a resource.
    Put,
    /// Changes parts of a resource.
    Patch,
    /// Deletes a resource.
    Delete,
}

impl Method {
    /// Returns whether the method only reads.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}
