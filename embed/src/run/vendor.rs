//! The providers of models: their addresses, and the variables of the environment that configure them. The names of the
//! variables are those of the providers' SDKs.

use bloomery_crds::v1alpha1::ModelProvider;

/// Looks up a variable of the environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A provider of models. `ModelProvider` is its wire protocol, which other servers may use too.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The wire protocol.
    pub provider: ModelProvider,
    /// The value of `options.model.provider`.
    pub name: &'static str,
    /// The URL of its API.
    pub url: &'static str,
    /// The default model.
    pub default_model: &'static str,
    /// The variable with the API key.
    pub key_variable: &'static str,
    /// The variable with a URL that replaces `url`.
    pub url_variable: &'static str,
    /// The path that the SDK appends to the URL in that variable.
    pub url_path: &'static str,
    /// The variable with the model.
    pub model_variable: &'static str,
    /// The prefix of the names of its models.
    pub model_prefix: &'static str,
}

/// All providers, in the order in which their variables are looked up.
pub const ALL: [Vendor; 2] = [
    Vendor {
        provider: ModelProvider::Openai,
        name: "openai",
        url: "https://api.openai.com/v1",
        default_model: "gpt-5-mini",
        key_variable: "OPENAI_API_KEY",
        url_variable: "OPENAI_BASE_URL",
        url_path: "",
        model_variable: "OPENAI_MODEL",
        model_prefix: "gpt-",
    },
    Vendor {
        provider: ModelProvider::Anthropic,
        name: "anthropic",
        url: "https://api.anthropic.com/v1",
        default_model: "claude-sonnet-4-5",
        key_variable: "ANTHROPIC_API_KEY",
        url_variable: "ANTHROPIC_BASE_URL",
        url_path: "/v1",
        model_variable: "ANTHROPIC_MODEL",
        model_prefix: "claude-",
    },
];

/// Returns the provider of a value of `options.model.provider`.
pub fn by_name(name: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.name == name)
}

/// Returns the provider of a wire protocol.
pub fn by_provider(provider: ModelProvider) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.provider == provider)
}

/// Returns the provider of a model, by the prefix of its name.
pub fn by_model(model: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| model.starts_with(vendor.model_prefix))
}

impl Vendor {
    /// Returns the URL of the provider in this environment.
    pub fn effective_url(&self, env: Env<'_>) -> String {
        let configured = env(self.url_variable).map(|url| format!("{}{}", url.trim_end_matches('/'), self.url_path));
        configured.unwrap_or_else(|| self.url.to_owned())
    }

    /// Returns whether a URL is that of the provider. The provider's key may be sent only there.
    pub fn owns_url(&self, url: &str, env: Env<'_>) -> bool {
        let url = url.trim_end_matches('/');
        url == self.url || url == self.effective_url(env).trim_end_matches('/')
    }
}
