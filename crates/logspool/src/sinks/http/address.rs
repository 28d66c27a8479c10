//! The address of a receiver: `http://HOST:PORT/PATH` or `https://HOST:PORT/PATH`.

use ureq::http::Uri;

use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;

/// An address without user, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddress(String);

impl HttpAddress {
    /// The address as text, without a slash at the end.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// An address on the loopback interface for the contract tests, where tests with different paths listen at different
    /// addresses.
    pub fn sample(path: &str) -> Self {
        let hash = path
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let [a, b, c, ..] = hash.to_be_bytes();
        Self(format!("http://127.{}.{}.{}:18642", a.max(1), b, c.clamp(1, 254)))
    }

    /// The address with the path of an interface. A path that is given already is not added again.
    pub fn url(&self, path: &str) -> String {
        if self.0.ends_with(path) { self.0.clone() } else { format!("{}{path}", self.0) }
    }
}

impl OptionField for HttpAddress {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        // An address may contain a password. It is not repeated in the error.
        if text.contains('@') {
            return Err(
                "user and password do not belong in the address (fix: the options user and password)".to_owned()
            );
        }
        let refused =
            || format!("{text:?} is none: it must be http://HOST:PORT or https://HOST:PORT, perhaps with a path");
        let uri: Uri = text.parse().map_err(|_| refused())?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        if !is_http || !has_host || uri.query().is_some() || text.contains('#') {
            return Err(refused());
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HttpAddress, String> {
        HttpAddress::from_value(&OptionValue::Text(text.to_owned()))
    }

    #[test]
    fn the_path_of_the_interface_is_added_once() {
        for (address, url) in [
            ("http://logs:3100", "http://logs:3100/api/push"),
            ("http://logs:3100/", "http://logs:3100/api/push"),
            ("https://logs/tenant/", "https://logs/tenant/api/push"),
            ("http://[::1]:3100/api/push", "http://[::1]:3100/api/push"),
        ] {
            assert_eq!(url, read(address).unwrap().url("/api/push"));
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_fix_and_without_the_password() {
        for text in ["", "logs:3100", "tcp://logs:3100", "http://", "http://logs?a=b", "http://logs/#x"] {
            assert!(read(text).unwrap_err().contains("it must be http://HOST:PORT"), "{text}");
        }
        let error = read("http://ann:hunter2@logs:3100").unwrap_err();
        assert!(error.contains("the options user and password") && !error.contains("hunter2"), "{error}");
    }
}
