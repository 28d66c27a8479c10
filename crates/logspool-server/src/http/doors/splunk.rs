//! Splunk's HTTP Event Collector: events as JSON objects one after the other, and lines of text.

use axum::Router;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;

use super::door::{Door, json};
use super::receive::{DoorReader, receive};
use crate::decoders::convert::{self, lossy};
use crate::decoders::splunk::{self, EventError};
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::peer::Peer;
use crate::record::Record;
use crate::value::Value;

/// The declaration of the HTTP Event Collector; see the module documentation.
pub(super) const SPLUNK: Door = Door { routes, failure };

fn routes(router: Router<Context>) -> Router<Context> {
    let events = ["/services/collector", "/services/collector/event", "/services/collector/event/1.0"];
    let raw = ["/services/collector/raw", "/services/collector/raw/1.0"];
    let health = ["/services/collector/health", "/services/collector/health/1.0"];
    let router = events.iter().fold(router, |router, path| router.route(path, post(self::events)));
    let router = raw.iter().fold(router, |router, path| router.route(path, post(lines)));
    let router = health.iter().fold(router, |router, path| router.route(path, get(healthy)));
    router.route("/services/collector/ack", post(acks))
}

async fn healthy() -> Response {
    json(StatusCode::OK, &json!({ "text": "HEC is healthy", "code": 17 }))
}

/// Events are stored before they are answered, so no later acknowledgement can be asked for.
async fn acks() -> Response {
    json(StatusCode::BAD_REQUEST, &json!({ "text": "ACK is disabled", "code": 14 }))
}

fn success() -> Response {
    json(StatusCode::OK, &json!({ "text": "Success", "code": 0 }))
}

async fn events(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    let mut unreadable = None;
    let received = receive(&context, peer, &headers, sent?, |body, reader: &mut DoorReader<'_>| {
        let objects = splunk::objects(body, |object| {
            let event = splunk::read(object);
            if let (None, Err(error)) = (&unreadable, &event) {
                unreadable = Some(error.clone());
            }
            reader.add(object, event);
        });
        objects.map_err(|error| {
            unreadable = None;
            let number = reader.records();
            HttpError(StatusCode::BAD_REQUEST, format!("invalid data format: event {number} is not JSON: {error}"))
        })?;
        match reader.records() {
            0 => Err(HttpError(StatusCode::BAD_REQUEST, NO_DATA.to_owned())),
            _ => Ok(()),
        }
    })
    .await;
    match (received, unreadable) {
        (Ok(()), _) => Ok(success()),
        (Err(HttpError(StatusCode::BAD_REQUEST, why)), Some(first)) => {
            Ok(numbered(StatusCode::BAD_REQUEST, &why, event_code(&first)))
        }
        (Err(error), _) => Err(error),
    }
}

/// Splunk's number of the reason why an event cannot be read.
fn event_code(error: &EventError) -> u8 {
    match error {
        EventError::Format(_) => INVALID_FORMAT,
        EventError::Missing => 12,
        EventError::Blank => 13,
    }
}

const INVALID_FORMAT: u8 = 6;
const NO_DATA: &str = "no data";

/// The facts of the query string about the lines of a body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct About {
    host: Option<String>,
    source: Option<String>,
    sourcetype: Option<String>,
    index: Option<String>,
    time: Option<f64>,
}

async fn lines(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Query(about): Query<About>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    receive(&context, peer, &headers, sent?, |body, reader: &mut DoorReader<'_>| {
        let named = [("source", &about.source), ("sourcetype", &about.sourcetype), ("index", &about.index)];
        for line in body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty()) {
            let fields = named.iter().filter_map(|(name, value)| {
                Some((Cow::Borrowed(*name), Value::Text(Cow::Borrowed(value.as_deref()?))))
            });
            reader.push(&Record {
                time_ns: about.time.and_then(|time| convert::nanoseconds(&Value::Float(time))),
                message: lossy(line),
                host: about.host.as_deref().map(Cow::Borrowed),
                fields: fields.collect(),
                ..Record::default()
            });
        }
        match reader.records() {
            0 => Err(HttpError(StatusCode::BAD_REQUEST, NO_DATA.to_owned())),
            _ => Ok(()),
        }
    })
    .await?;
    Ok(success())
}

/// Errors of the collector have a number of their own.
fn failure(status: StatusCode, why: &str) -> Response {
    let code = match status {
        StatusCode::UNAUTHORIZED => 2,
        StatusCode::FORBIDDEN => 4,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => 9,
        status if status.is_server_error() => 8,
        _ if why == NO_DATA => 5,
        _ => INVALID_FORMAT,
    };
    numbered(status, why, code)
}

fn numbered(status: StatusCode, why: &str, code: u8) -> Response {
    json(status, &json!({ "text": why, "code": code }))
}
