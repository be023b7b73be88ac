//! The providers of models: their addresses, and the variables of the environment with their keys. The names are
//! those of their own SDKs.

use bloomery_crds::v1alpha1::ModelProvider;

/// Looks up a variable of the environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A provider of models.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The wire protocol.
    pub provider: ModelProvider,
    /// The value of `--provider`.
    pub name: &'static str,
    /// The URL of its API.
    pub url: &'static str,
    /// The default model.
    pub model: &'static str,
    /// The variable with the key.
    pub key_variable: &'static str,
    /// The variable with another URL, as its SDK reads it.
    pub url_variable: &'static str,
    /// The path that its SDK adds to such a URL.
    pub below: &'static str,
    /// The variable with the model.
    pub model_variable: &'static str,
    /// The prefix of the names of its models.
    pub prefix: &'static str,
}

/// All providers, in the order in which their keys are searched.
pub const ALL: [Vendor; 2] = [
    Vendor {
        provider: ModelProvider::Openai,
        name: "openai",
        url: "https://api.openai.com/v1",
        model: "gpt-5-mini",
        key_variable: "OPENAI_API_KEY",
        url_variable: "OPENAI_BASE_URL",
        below: "",
        model_variable: "OPENAI_MODEL",
        prefix: "gpt-",
    },
    Vendor {
        provider: ModelProvider::Anthropic,
        name: "anthropic",
        url: "https://api.anthropic.com/v1",
        model: "claude-sonnet-4-5",
        key_variable: "ANTHROPIC_API_KEY",
        url_variable: "ANTHROPIC_BASE_URL",
        below: "/v1",
        model_variable: "ANTHROPIC_MODEL",
        prefix: "claude-",
    },
];

/// Returns the provider of a value of `--provider`.
pub fn by_name(name: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.name == name)
}

/// Returns the provider of a wire protocol.
pub fn by_provider(provider: ModelProvider) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.provider == provider)
}

/// Returns the provider of a model.
pub fn by_model(model: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| model.starts_with(vendor.prefix))
}

impl Vendor {
    /// Returns its URL in this environment.
    pub fn own_url(&self, env: Env<'_>) -> String {
        let other = env(self.url_variable).map(|url| format!("{}{}", url.trim_end_matches('/'), self.below));
        other.unwrap_or_else(|| self.url.to_owned())
    }

    /// Returns whether a URL belongs to the provider, so that its key may be sent there.
    pub fn is_at(&self, url: &str, env: Env<'_>) -> bool {
        let url = url.trim_end_matches('/');
        url == self.url || url == self.own_url(env).trim_end_matches('/')
    }
}
