//! The settings of a gateway on a cluster: read once at start, from environment variables or flags.

use crate::cluster_access::ProxyTrust;
use axum::http::HeaderName;
use clap::Parser;
use std::net::SocketAddr;
use tracing_subscriber::EnvFilter;

/// The settings of the gateway. Each is an environment variable and a flag.
#[derive(Debug, Clone, Parser)]
#[command(name = "bloomery-gateway", version, about = "The HTTP server of Bloomery: REST and server-sent events")]
pub struct Settings {
    /// Filter for log lines: a level, or `target=level` pairs.
    #[arg(long = "log", env = "BLOOMERY_LOG", default_value = "info", value_parser = log_filter)]
    pub log_filter: String,
    /// Address where the API is served. `[::]` means all addresses of IPv6 and IPv4.
    #[arg(long, env = "BLOOMERY_API_ADDR", default_value = "[::]:8080")]
    pub api_addr: SocketAddr,
    /// Address where health and metrics are served.
    #[arg(long, env = "BLOOMERY_HTTP_ADDR", default_value = "[::]:8081")]
    pub http_addr: SocketAddr,
    /// Namespace of requests that name none.
    #[arg(long, env = "BLOOMERY_DEFAULT_NAMESPACE", default_value = "default")]
    pub default_namespace: String,
    /// Image of the pods that read the logs of Jobs. Default: that of a worker pod in the namespace.
    #[arg(long, env = "BLOOMERY_WORKER_IMAGE")]
    pub worker_image: Option<String>,
    /// The authenticating proxy.
    #[command(flatten)]
    pub proxy: ProxySettings,
}

/// Settings of authenticating proxies.
#[derive(Debug, Clone, clap::Args)]
pub struct ProxySettings {
    /// Names of authenticating proxies at the API server, separated by commas, such as `system:serviceaccount:auth:oauth2-proxy`. The
    /// gateway impersonates the user whom a header of their requests names.
    #[arg(long = "proxies", env = "BLOOMERY_PROXIES", value_delimiter = ',', requires = "groups")]
    pub proxies: Vec<String>,
    /// Groups whose users the gateway impersonates, separated by commas.
    #[arg(long = "proxy-groups", env = "BLOOMERY_PROXY_GROUPS", value_delimiter = ',')]
    pub groups: Vec<String>,
    /// Header with the name of the user.
    #[arg(long = "proxy-user-header", env = "BLOOMERY_PROXY_USER_HEADER", default_value = "x-forwarded-user")]
    pub user_header: HeaderName,
    /// Header with the groups of the user, separated by commas.
    #[arg(long = "proxy-groups-header", env = "BLOOMERY_PROXY_GROUPS_HEADER", default_value = "x-forwarded-groups")]
    pub groups_header: HeaderName,
}

impl Settings {
    /// Returns the filter for log lines.
    pub fn log_filter(&self) -> EnvFilter {
        // The parser has validated the filter, so the fallback is never needed.
        self.log_filter.parse().unwrap_or_else(|_| EnvFilter::new("info"))
    }
}

impl From<ProxySettings> for ProxyTrust {
    fn from(settings: ProxySettings) -> Self {
        let ProxySettings { proxies, groups, user_header, groups_header } = settings;
        Self { proxies, user_header, groups_header, groups }
    }
}

/// Parses a log filter.
fn log_filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    text.parse::<EnvFilter>().map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use rstest::rstest;

    fn parse(flags: &[&str]) -> Result<Settings, clap::Error> {
        Settings::try_parse_from(["bloomery-gateway"].iter().chain(flags))
    }

    #[test]
    fn all_settings_have_defaults() {
        Settings::command().debug_assert();
        let settings = parse(&[]).unwrap();
        assert_eq!((settings.api_addr.port(), settings.http_addr.port()), (8080, 8081));
        assert!(settings.proxy.proxies.is_empty() && settings.default_namespace == "default");
    }

    #[test]
    fn proxies_and_groups_are_lists() {
        let settings = parse(&["--proxies=a,b", "--proxy-groups=support,finance"]).unwrap();
        let trust = ProxyTrust::from(settings.proxy);
        assert_eq!((trust.proxies, trust.groups.len()), (vec!["a".to_owned(), "b".to_owned()], 2));
        assert_eq!(trust.user_header, "x-forwarded-user");
    }

    #[rstest]
    #[case("--proxies=a")]
    #[case("--log=a=b=c")]
    #[case("--api-addr=here")]
    #[case("--proxy-user-header=two words")]
    fn an_invalid_setting_is_refused(#[case] flag: &str) {
        assert!(parse(&[flag]).is_err());
    }
}
