//! What is known of the providers of models: where they are, and what the environment calls their keys. The names are
//! those of their own SDKs.

use bloomery_crds::v1alpha1::ModelProvider;

/// Looks up a variable of the environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A provider of models.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Its wire protocol.
    pub provider: ModelProvider,
    /// What `--provider` calls it.
    pub name: &'static str,
    /// Where it is.
    pub url: &'static str,
    /// The model that is asked where none is named.
    pub model: &'static str,
    /// The variable that holds the key.
    pub key_variable: &'static str,
    /// The variable that holds another address, as its SDK reads it.
    pub url_variable: &'static str,
    /// What its SDK adds to such an address.
    pub below: &'static str,
    /// The variable that names a model.
    pub model_variable: &'static str,
    /// How the names of its models begin.
    pub prefix: &'static str,
}

/// Every provider, in the order in which their keys are looked for.
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

/// The provider that `--provider` calls so.
pub fn by_name(name: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.name == name)
}

/// The provider of a wire protocol.
pub fn by_provider(provider: ModelProvider) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| vendor.provider == provider)
}

/// The provider whose model bears such a name.
pub fn by_model(model: &str) -> Option<&'static Vendor> {
    ALL.iter().find(|vendor| model.starts_with(vendor.prefix))
}

impl Vendor {
    /// Where it is, for whoever has this environment.
    pub fn own_url(&self, env: Env<'_>) -> String {
        let other = env(self.url_variable).map(|url| format!("{}{}", url.trim_end_matches('/'), self.below));
        other.unwrap_or_else(|| self.url.to_owned())
    }

    /// Whether an address is its own, so that its key belongs there.
    pub fn is_at(&self, url: &str, env: Env<'_>) -> bool {
        let url = url.trim_end_matches('/');
        url == self.url || url == self.own_url(env).trim_end_matches('/')
    }
}
