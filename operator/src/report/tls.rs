//! The certificate with which this replica serves the report endpoint. It is signed by the CA in the Secret, and renewed
//! before it expires. The leader fills the Secret, which also has the keys of the tokens for MCP servers.

use super::ca::{self, Authorities};
use super::token_keys::{self, CURRENT_ENTRY, NEXT_ENTRY, TokenKeys};
use crate::context::Context;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, ServerConfig};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The entries of the Secret.
const CERTIFICATES_ENTRY: &str = "ca.crt";
const KEYS_ENTRY: &str = "ca.key";

/// The interval for retrying after an error, or while the leader has not filled the Secret.
const CERTIFICATE_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The interval for reading the Secret and renewing this replica's certificate.
const CERTIFICATE_RENEWAL_INTERVAL: Duration = Duration::from_hours(12);

/// The reason why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The Secret cannot be read or written.
    #[error("the Secret cannot be {what}: {source}")]
    Api {
        /// The failed operation.
        what: &'static str,
        /// The error of the client.
        source: kube::Error,
    },
    /// The content of the Secret cannot be used.
    #[error("{0}")]
    Ca(#[from] ca::Error),
    /// The keys of tokens cannot be used.
    #[error("{0}")]
    TokenKeys(#[from] token_keys::Error),
    /// The key cannot be used.
    #[error("the key of the certificate cannot be used: {0}")]
    Key(#[from] TlsError),
    /// The leader has not filled the Secret yet.
    #[error("the Secret is empty until the leader fills it")]
    Empty,
}

/// The certificate that the endpoint serves now; none before the first one is signed.
#[derive(Debug, Default)]
pub(super) struct ServedCertificate(RwLock<Option<Arc<CertifiedKey>>>);

impl ServedCertificate {
    fn set(&self, key: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Configures TLS 1.2 and 1.3 with the certificate that is current at each handshake.
pub(super) fn config(served: Arc<ServedCertificate>) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_cert_resolver(served);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Keeps the certificate valid and the CA bundle current. The future ends only when it is dropped.
pub(super) async fn keep_renewed(context: &Context, served: &ServedCertificate) {
    let mut last_message = String::new();
    loop {
        let pause = match renew(context, served).await {
            Ok(()) => CERTIFICATE_RENEWAL_INTERVAL,
            Err(error) => {
                let secret = &context.settings.report.ca_secret;
                let message = format!(
                    "the CA of the report endpoint cannot be used (Secret {}/{secret}): {error}",
                    context.settings.pod_namespace
                );
                match error {
                    Error::Empty => tracing::debug!("{message}"),
                    // A repeated warning is logged once.
                    _ if message == last_message => {}
                    _ => tracing::warn!("{message}"),
                }
                last_message = message;
                CERTIFICATE_RETRY_INTERVAL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // A new leader checks at once whether a new authority is needed.
            () = context.leadership.wait_until_gained(), if !context.leadership.is_leader() => {}
        }
    }
}

async fn renew(context: &Context, served: &ServedCertificate) -> Result<(), Error> {
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
    let (authorities, token_keys) = read_or_fill_secret(context, now).await?;
    let names = host_names(&context.settings.report_url());
    let leaf = authorities.issue(&names, now)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf.key));
    let key = ring::sign::any_ecdsa_type(&key)?;
    served.set(CertifiedKey::new(vec![leaf.certificate], key));
    // Before the bundle: with it, the first pods are created.
    context.pod_seals.set_keys(authorities.keys());
    // Keys of tokens that cannot be read stop only the Skills.
    let has_keys = token_keys.parse().map(|keys| context.server_tokens.set_keys(keys));
    context.report_ca_bundle.set(authorities.bundle(now));
    context.readiness.report_ca.set();
    Ok(has_keys?)
}

/// Reads the authorities and the keys of tokens. The leader creates a new authority if needed. Any replica creates missing keys of tokens,
/// because the leader may be of an earlier version, which has none.
async fn read_or_fill_secret(context: &Context, now: u64) -> Result<(Authorities, TokenKeys), Error> {
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &context.settings.pod_namespace);
    let name = &context.settings.report.ca_secret;
    let secret = api.get(name).await.map_err(|source| Error::Api { what: "read", source })?;
    let stored = Authorities::read(&entry_text(&secret, CERTIFICATES_ENTRY), &entry_text(&secret, KEYS_ENTRY))?;
    let stored_keys = TokenKeys { current: entry_text(&secret, CURRENT_ENTRY), next: entry_text(&secret, NEXT_ENTRY) };
    let renews = stored.needs_renewal(now) && context.leadership.is_leader();
    if !renews && stored.bundle(now).is_empty() {
        return Err(Error::Empty);
    }
    let authorities = if renews { stored.renewed(now)? } else { stored };
    let token_keys = stored_keys.clone().complete()?;
    if !renews && token_keys == stored_keys {
        return Ok((authorities, token_keys));
    }
    let filled = with_entries(secret, &authorities, &token_keys);
    // The update carries the version that was read. If two replicas write at the same time, the API server refuses one
    // update, and that replica reads what the other has written.
    context.metrics.count_write("Secret", "update");
    let written = api.replace(name, &PostParams::default(), &filled).await;
    written.map_err(|source| Error::Api { what: "filled", source })?;
    if renews {
        tracing::info!(secret = name, "created a certificate authority for the report endpoint");
    }
    if token_keys != stored_keys {
        tracing::info!(secret = name, "created a key of the tokens for MCP servers");
    }
    Ok((authorities, token_keys))
}

fn entry_text(secret: &Secret, key: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

fn with_entries(mut secret: Secret, authorities: &Authorities, token_keys: &TokenKeys) -> Secret {
    let (certificates, keys) = authorities.to_pem();
    let TokenKeys { current, next } = token_keys.clone();
    let data = secret.data.get_or_insert_with(BTreeMap::new);
    for (entry, text) in
        [(CERTIFICATES_ENTRY, certificates), (KEYS_ENTRY, keys), (CURRENT_ENTRY, current), (NEXT_ENTRY, next)]
    {
        data.insert(entry.to_owned(), ByteString(text.into_bytes()));
    }
    secret
}

/// The host names of the endpoint: the host of its URL, and for a Service also the name that ends in `cluster.local`.
fn host_names(url: &str) -> Vec<String> {
    let authority = url.strip_prefix("https://").unwrap_or(url);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    let mut names = vec![host.to_owned()];
    if host.rsplit('.').next() == Some("svc") {
        names.push(format!("{host}.cluster.local"));
    }
    names
}

#[cfg(test)]
mod tests;
