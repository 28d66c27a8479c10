//! Elasticsearch's `_bulk`, with the answers that Filebeat, Logstash, Vector, Fluent Bit and Fluentd check at their start.
//!
//! Templates, policies and data streams are reported as present, so that senders do not wait for them. Nothing of them
//! is stored: the service keeps every field of every document.

use std::fmt::Write as _;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};

use super::door::{Door, json};
use super::receive::{DoorReader, store};
use crate::decoders::elastic::{self, Action};
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::ingest::{self, DecodePermit};
use crate::peer::Peer;

/// The declaration of Elasticsearch's paths; see the module documentation.
pub(super) const ELASTIC: Door = Door { routes, failure };

/// The version that senders are told.
///
/// Chosen: senders of the releases 7, 8 and 9 accept it, and it has data streams and the current form of templates.
const VERSION: &str = "8.19.0";

/// Maximum number of actions in a request.
///
/// Chosen: the answer has some 200 bytes for each action. Ten times as many as senders put into a request.
const MAX_ACTIONS: usize = 100_000;

fn routes(router: Router<Context>) -> Router<Context> {
    let present = [
        "/_ilm/policy/{name}",
        "/_index_template/{name}",
        "/_template/{name}",
        "/_component_template/{name}",
        "/_data_stream/{name}",
        "/_ingest/pipeline/{name}",
        "/_alias/{name}",
    ];
    let router = present.iter().fold(router, |router, path| router.route(path, any(present_thing)));
    router
        .route("/_bulk", post(bulk).put(bulk))
        .route("/{index}/_bulk", post(bulk_of_index).put(bulk_of_index))
        .route("/_license", get(|| async { license() }))
        .route("/_xpack", get(|| async { json(StatusCode::OK, &json!({ "features": FEATURES.map(feature) })) }))
        .route("/_cluster/health", get(|| async { health() }))
        .route("/_nodes/http", get(|| async { json(StatusCode::OK, &json!({ "nodes": {} })) }))
        .layer(middleware::map_response(async |response: Response| product(response)))
}

const FEATURES: [&str; 1] = ["ilm"];

fn feature(name: &str) -> Value {
    json!({ name: { "available": true, "enabled": true } })
}

/// Marks an answer as Elasticsearch's: its clients refuse answers without this header.
fn product(mut response: Response) -> Response {
    response.headers_mut().insert("x-elastic-product", HeaderValue::from_static("Elasticsearch"));
    response
}

/// The answer to `GET /` of a client of Elasticsearch; `None` for other requests to this path.
pub(in crate::http) fn greeting(request: &Request) -> Option<Response> {
    let headers = request.headers();
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_client =
        ["x-elastic-product-origin", "x-elastic-client-meta"].iter().any(|name| headers.contains_key(*name));
    let asks = is_client || (accepts.contains("json") && !accepts.contains("html"));
    let is_greeting = matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path() == "/";
    (is_greeting && asks && request.uri().query().is_none()).then(|| {
        product(json(
            StatusCode::OK,
            &json!({
                "name": "logspool",
                "cluster_name": "logspool",
                "cluster_uuid": "logspool",
                "version": {
                    "number": VERSION,
                    "build_flavor": "default",
                    "build_type": "logspool",
                    "build_hash": "unknown",
                    "build_snapshot": false,
                    "lucene_version": "9.12.0",
                    "minimum_wire_compatibility_version": "7.17.0",
                    "minimum_index_compatibility_version": "7.0.0",
                },
                "tagline": "You Know, for Search",
            }),
        ))
    })
}

fn license() -> Response {
    let license = json!({ "uid": "logspool", "type": "basic", "mode": "basic", "status": "active" });
    json(StatusCode::OK, &json!({ "license": license }))
}

fn health() -> Response {
    let health = json!({
        "cluster_name": "logspool", "status": "green", "timed_out": false, "number_of_nodes": 1,
        "number_of_data_nodes": 1, "active_shards": 1, "unassigned_shards": 0,
    });
    json(StatusCode::OK, &health)
}

/// A template, policy, pipeline or data stream: it is there, and a new one is accepted.
async fn present_thing(method: Method) -> Response {
    match method {
        Method::GET | Method::HEAD => json(StatusCode::OK, &json!({})),
        _ => json(StatusCode::OK, &json!({ "acknowledged": true })),
    }
}

async fn bulk(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    receive_bulk(context, peer, headers, String::new(), sent?).await
}

async fn bulk_of_index(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Path(index): Path<String>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    receive_bulk(context, peer, headers, index, sent?).await
}

async fn receive_bulk(
    context: Context,
    peer: Peer,
    headers: HeaderMap,
    index: String,
    sent: RequestBody,
) -> Result<Response, HttpError> {
    let turn = DecodePermit::wait(peer.origin(), &context).await?;
    let (batch, items) = ingest::decode(&sent, || {
        let body = sent.inflated(&headers, &context.limits)?;
        let mut reader = DoorReader::new(peer, body.len(), &context);
        let items = read(&body, &index, context.limits.frame_bytes, &mut reader)?;
        // Unlike other paths, an unreadable document is also reported alone: each one has an answer of its own.
        Ok::<_, HttpError>((reader.take_all()?, items))
    })?;
    drop(sent);
    store(&context, batch, turn).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], items.answer()).into_response())
}

/// The answers to the actions of a request, as JSON.
#[derive(Default)]
struct Items {
    json: String,
    actions: usize,
    has_errors: bool,
}

impl Items {
    fn answer(self) -> String {
        format!("{{\"took\":1,\"errors\":{},\"items\":[{}]}}", self.has_errors, self.json)
    }

    fn add(&mut self, action: &elastic::ActionLine<'_>, index: &str, ids: &str, problem: Option<(&str, &str)>) {
        if self.actions > 0 {
            self.json.push(',');
        }
        self.actions += 1;
        let id = action.id.as_deref().map_or_else(|| format!("{ids}{:x}", self.actions), str::to_owned);
        let (name, index, id) = (action.action.name(), json!(index), json!(id));
        // Writing to a `String` cannot fail.
        _ = match problem {
            None => write!(
                self.json,
                "{{\"{name}\":{{\"_index\":{index},\"_id\":{id},\"_version\":1,\"result\":\"created\",\"_shards\":\
                 {{\"total\":1,\"successful\":1,\"failed\":0}},\"_seq_no\":0,\"_primary_term\":1,\"status\":201}}}}"
            ),
            Some((kind, why)) => {
                self.has_errors = true;
                let why = json!(why);
                write!(
                    self.json,
                    "{{\"{name}\":{{\"_index\":{index},\"_id\":{id},\"status\":400,\"error\":{{\"type\":\"{kind}\",\
                     \"reason\":{why}}}}}}}"
                )
            }
        };
    }
}

/// Reads all actions and their documents.
fn read(body: &[u8], default: &str, longest: usize, reader: &mut DoorReader<'_>) -> Result<Items, HttpError> {
    let bad = |line: usize, why: &str| {
        HttpError(StatusCode::BAD_REQUEST, format!("Malformed action/metadata line [{line}], {why}"))
    };
    let mut items = Items::default();
    let ids = random_id()?;
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    while let Some((number, line)) = lines.next() {
        let action = elastic::action(line).ok_or_else(|| bad(number + 1, "expected an action with its index"))?;
        if items.actions == MAX_ACTIONS {
            let why = format!("the request contains more than {MAX_ACTIONS} actions: send fewer at once");
            return Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let index = action.index.as_deref().unwrap_or(default);
        if action.action == Action::Delete {
            items.add(&action, index, &ids, Some(UNCHANGEABLE));
            continue;
        }
        let Some((_, document)) = lines.next() else { return Err(bad(number + 1, "expected a document after it")) };
        if action.action == Action::Update {
            items.add(&action, index, &ids, Some(UNCHANGEABLE));
            continue;
        }
        let read = match document.len() <= longest {
            true => elastic::document(document, index),
            false => Err(format!("the document is longer than {longest} bytes (limits.frame_bytes)")),
        };
        match read {
            Ok(record) => {
                reader.push(&record);
                items.add(&action, index, &ids, None);
            }
            Err(why) => {
                reader.reject(document, &why);
                items.add(&action, index, &ids, Some(("document_parsing_exception", &why)));
            }
        }
    }
    if items.actions == 0 {
        return Err(HttpError(StatusCode::BAD_REQUEST, "request body is required".to_owned()));
    }
    Ok(items)
}

const UNCHANGEABLE: (&str, &str) =
    ("illegal_argument_exception", "stored records cannot be changed or deleted: use the actions index and create");

/// The beginning of the ids of a request's documents.
fn random_id() -> Result<String, HttpError> {
    let random = getrandom::u64().map_err(|error| {
        HttpError(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot make ids of documents: {error}"))
    })?;
    Ok(format!("{random:016x}"))
}

fn failure(status: StatusCode, why: &str) -> Response {
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "security_exception",
        StatusCode::TOO_MANY_REQUESTS => "es_rejected_execution_exception",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable_shards_exception",
        status if status.is_server_error() => "exception",
        _ => "illegal_argument_exception",
    };
    let cause = json!({ "type": kind, "reason": why });
    let error = json!({ "root_cause": [cause], "type": kind, "reason": why });
    product(json(status, &json!({ "error": error, "status": status.as_u16() })))
}
