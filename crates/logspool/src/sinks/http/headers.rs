//! Headers of the options. No text that logspool shows contains them.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::http::{HeaderName, HeaderValue};

use super::HttpSettings;
use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;

/// Headers, one `Name: value` a line.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpHeaders(String);

impl fmt::Debug for HttpHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HttpHeaders")
    }
}

impl HttpHeaders {
    fn read(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let lines = self.0.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(index, line)| {
                let refused = || format!("line {} is no header (fix: Name: value, one a line)", index + 1);
                let (name, value) = line.split_once(':').ok_or_else(refused)?;
                let name = name.trim().parse().map_err(|_| refused())?;
                Ok((name, HeaderValue::from_str(value.trim()).map_err(|_| refused())?))
            })
            .collect()
    }
}

impl OptionField for HttpHeaders {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let headers = Self(String::from_value(value).map_err(|_| "it is no text".to_owned())?);
        headers.read()?;
        Ok(headers)
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.0.clone())
    }
}

/// All headers that the settings ask for.
///
/// # Errors
///
/// Settings that contradict each other.
pub fn all(settings: &HttpSettings) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mut headers = settings.headers.as_ref().map_or(Ok(Vec::new()), HttpHeaders::read)?;
    let authorization = match (&settings.user, &settings.password, &settings.token) {
        (None, None, None) => return Ok(headers),
        (None, None, Some(token)) => format!("Bearer {}", token.text()),
        (Some(user), Some(password), None) => {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{}", password.text())))
        }
        (_, _, Some(_)) => return Err("give either token, or user and password".to_owned()),
        (Some(_), None, None) => return Err("user needs password".to_owned()),
        (None, Some(_), None) => return Err("password needs user".to_owned()),
    };
    let mut value = HeaderValue::from_str(&authorization)
        .map_err(|_| "the user, password or token cannot be written in a header".to_owned())?;
    value.set_sensitive(true);
    headers.push((ureq::http::header::AUTHORIZATION, value));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn headers_are_read_and_errors_do_not_show_them() {
        let headers = HttpHeaders::from_value(&text("X-Scope-OrgID: a\n\n X-Key :  b: c \n")).unwrap().read().unwrap();
        let shown: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!([("x-scope-orgid", "a"), ("x-key", "b: c")], *shown);

        for wrong in ["hunter2", "a: b\nhunter2", "a b: hunter2", "a: hunter2\u{1}"] {
            let error = HttpHeaders::from_value(&text(wrong)).unwrap_err();
            assert!(error.contains("fix: Name: value") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn no_header_is_in_a_debug_text() {
        let headers = HttpHeaders::from_value(&text("X-Key: hunter2")).unwrap();

        assert!(!format!("{headers:?}").contains("hunter2"));
    }
}
