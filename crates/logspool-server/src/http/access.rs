//! Checks the tokens and host names of requests.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::parts;

/// The valid tokens and host names. They can be changed while the service runs.
#[derive(Debug, Clone, Default)]
pub struct AccessControl(Arc<RwLock<AccessRules>>);

#[derive(Debug, Default)]
struct AccessRules {
    tokens: Vec<[u8; 32]>,
    hosts: Vec<String>,
}

impl AccessControl {
    /// Creates the rules from a configuration that has been checked.
    pub fn new(access: &parts::Access) -> Self {
        let known = Self::default();
        known.change(access);
        known
    }

    /// Replaces the tokens and host names by those of a configuration.
    pub fn change(&self, access: &parts::Access) {
        let tokens = access.token_sha256.iter().filter_map(|hex| digest(hex)).collect();
        let hosts = access.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = AccessRules { tokens, hosts };
    }

    /// True if a request with these headers is allowed.
    pub(super) fn allows(&self, headers: &HeaderMap) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.tokens.is_empty() {
            return true;
        }
        // Compare with every token, each in constant time, so that the duration tells nothing about a token.
        tokens(headers).iter().any(|sent| {
            let sent = Sha256::digest(sent);
            known.tokens.iter().fold(false, |found, token| found | bool::from(token[..].ct_eq(&sent[..])))
        })
    }

    /// True if the service accepts requests for this host.
    pub(super) fn knows_host(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name).to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || address.parse::<IpAddr>().is_ok()
            || self.0.read().unwrap_or_else(PoisonError::into_inner).hosts.contains(&name)
    }
}

/// The tokens in the headers of a request, in the forms in which senders can be told to send one.
///
/// | sender | header |
/// |---|---|
/// | most | `Authorization: Bearer TOKEN` |
/// | Splunk's HEC | `Authorization: Splunk TOKEN` |
/// | Elasticsearch | `Authorization: ApiKey TOKEN`, or base64 of `ID:TOKEN` |
/// | Loki, Elasticsearch, Splunk's HEC | `Authorization: Basic`, with the token as password of any user |
/// | Seq | `X-Seq-ApiKey: TOKEN` |
fn tokens(headers: &HeaderMap) -> Vec<Vec<u8>> {
    let mut tokens = Vec::new();
    let values = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    for (scheme, value) in values.filter_map(|value| value.split_once(' ')) {
        let value = value.trim();
        // The name of an authentication scheme is case-insensitive (RFC 9110, 11.1).
        let is = |name: &str| scheme.eq_ignore_ascii_case(name);
        if is("Bearer") || is("Splunk") || is("ApiKey") {
            tokens.push(value.as_bytes().to_vec());
        }
        if (is("ApiKey") || is("Basic"))
            && let Ok(pair) = BASE64.decode(value)
            && let Some(colon) = memchr::memchr(b':', &pair)
        {
            tokens.push(pair[colon + 1..].to_vec());
        }
    }
    tokens.extend(headers.get("x-seq-apikey").map(|token| token.as_bytes().to_vec()));
    tokens
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(tokens: &[&str], hosts: &[&str]) -> AccessControl {
        let own = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        AccessControl::new(&parts::Access { token_sha256: own(tokens), hosts: own(hosts) })
    }

    #[test]
    fn a_token_is_known_by_its_digest() {
        // The output of `printf %s secret | sha256sum`.
        let access = access(&["2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"], &[]);

        let headers = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(header::HeaderName::from_static(name), value.parse().unwrap())])
        };
        // The base64 texts are `id:secret`, `x:y:secret` and `:Secret`.
        for right in [
            "Bearer secret",
            "bearer secret",
            "BEARER  secret",
            "Splunk secret",
            "ApiKey secret",
            "ApiKey aWQ6c2VjcmV0",
            "Basic aWQ6c2VjcmV0",
        ] {
            assert!(access.allows(&headers("authorization", right)), "{right}");
        }
        for wrong in [
            "Bearer Secret",
            "Bearer ",
            "Basic secret",
            "secret",
            "Bearersecret",
            "Basic eDp5OnNlY3JldA==",
            "Basic OlNlY3JldA==",
            "Bearer aWQ6c2VjcmV0",
        ] {
            assert!(!access.allows(&headers("authorization", wrong)), "{wrong:?}");
        }
        assert!(access.allows(&headers("x-seq-apikey", "secret")));
        assert!(!access.allows(&HeaderMap::new()));
        assert!(super::AccessControl::default().allows(&HeaderMap::new()));
    }

    #[test]
    fn requests_may_use_addresses_localhost_and_configured_names() {
        let access = access(&[], &["Logs.example"]);

        for known in ["127.0.0.1:9080", "localhost", "LOCALHOST:1", "[::1]:9080", "logs.example:80"] {
            assert!(access.knows_host(known), "{known}");
        }
        for foreign in ["", "evil.example", "localhost.evil.example:9080", "127.0.0.1.evil.example"] {
            assert!(!access.knows_host(foreign), "{foreign}");
        }
    }
}
