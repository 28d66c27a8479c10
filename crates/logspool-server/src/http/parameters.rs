//! The parameters in the query string of a request. Errors are answered as JSON, like all other errors.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};

use super::error::HttpError;

/// The start of axum's error message, which is removed. The name of the parameter follows it.
const PREFIX: &str = "Failed to deserialize query string: ";

/// Parameters of a request.
#[derive(Debug)]
pub(super) struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let found = Query::try_from_uri(&parts.uri);
        found.map(|Query(parameters)| Self(parameters)).map_err(|rejection| {
            let why = rejection.body_text();
            let why = why.strip_prefix(PREFIX).unwrap_or(&why);
            HttpError(StatusCode::BAD_REQUEST, format!("cannot read the parameters of the request: {why}"))
        })
    }
}

/// Reads an optional number. The error contains the value that is not a number.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = Cow::<'de, str>::deserialize(from)?;
    text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not a whole number")))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        #[serde(default, deserialize_with = "number")]
        limit: Option<u64>,
    }

    async fn read(query: &str) -> Result<Option<u64>, String> {
        let (mut parts, ()) = Request::get(format!("/api/query{query}")).body(()).unwrap().into_parts();
        let read = Parameters::<Asked>::from_request_parts(&mut parts, &()).await;
        read.map(|Parameters(asked)| asked.limit).map_err(|HttpError(status, why)| format!("{} {why}", status.as_u16()))
    }

    #[tokio::test]
    async fn a_wrong_parameter_is_named() {
        assert_eq!((Ok(None), Ok(Some(5))), (read("").await, read("?limit=5").await));
        for (query, part) in [
            ("?limit=x", "request: limit: \"x\" is not a whole number"),
            ("?limit=-1", "\"-1\""),
            ("?limit=", "\"\""),
            ("?limit=1&limit=2", "duplicate field `limit`"),
            ("?most=5", "unknown field `most`, expected `limit`"),
        ] {
            let why = read(query).await.unwrap_err();
            assert!(why.starts_with("400 cannot read the parameters") && why.contains(part), "{query}: {why}");
        }
    }
}
