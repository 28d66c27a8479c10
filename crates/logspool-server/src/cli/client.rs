//! HTTP requests to a running service.

use std::fmt::Write as _;
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ureq::http::header::RETRY_AFTER;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::failure::CommandFailure;

/// How long to retry while the service has no room for the query. Chosen: within this time the service completes other
/// queries, and a person still waits for it.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// How long to wait for a connection if there are several services. Chosen: a sender waits as long.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The service to ask.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArguments {
    /// The service to ask. Of several with one store, as http://a:9080,b:9080, the first that can be reached.
    #[arg(
        long = "service",
        value_name = "URL",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:9080",
        env = "LOGSPOOL_SERVICE"
    )]
    pub url: Vec<String>,
    /// Its token, where it asks for one.
    #[arg(long, value_name = "TOKEN", env = "LOGSPOOL_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

impl ServiceArguments {
    /// The URLs of the services. An item of the list without a scheme has the scheme of the first one.
    fn urls(&self) -> Result<Vec<String>, CommandFailure> {
        let scheme = self.url[0].split_once("://").map_or("http", |(scheme, _)| scheme);
        let complete = |item: &String| match item.trim_end_matches('/') {
            "" => {
                let why = "--service: an item of the list is empty (fix: URL on both sides of each comma)";
                Err(CommandFailure::Usage(why.to_owned()))
            }
            item if item.contains("://") => Ok(item.to_owned()),
            item => Ok(format!("{scheme}://{item}")),
        };
        self.url.iter().map(complete).collect()
    }
}

/// Sends a GET request to the first service that can be reached, and returns the body of the answer as a stream. If the
/// service has no room for the query, the request is repeated for up to [`RETRY_TIME`].
pub(super) fn get_body(
    service: &ServiceArguments,
    path: &str,
    parameters: &[(&str, &str)],
) -> Result<impl Read + use<>, CommandFailure> {
    let urls = service.urls()?;
    let limit = (urls.len() > 1).then_some(CONNECT_LIMIT);
    let config = Agent::config_builder().http_status_as_error(false).timeout_connect(limit);
    let agent = Agent::new_with_config(config.build());
    let mut tried = String::new();
    for url in urls.into_iter().map(|url| url + path) {
        match get(&agent, &url, service.token.as_deref(), parameters) {
            Ok(answer) => return body_of(&url, answer),
            Err(error) => {
                let _ = write!(tried, "cannot reach {url}: {error}; ");
            }
        }
    }
    let hint = "is the service running? `logspool serve` starts one";
    Err(CommandFailure::Failed(format!("{tried}{hint}")))
}

fn get(
    agent: &Agent,
    url: &str,
    token: Option<&str>,
    parameters: &[(&str, &str)],
) -> Result<Response<Body>, ureq::Error> {
    let began = Instant::now();
    loop {
        let mut request = agent.get(url).query_pairs(parameters.iter().copied());
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = request.call()?;
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let wait = Duration::from_secs(seconds.unwrap_or(1));
        if answer.status() != StatusCode::TOO_MANY_REQUESTS || began.elapsed() + wait > RETRY_TIME {
            return Ok(answer);
        }
        sleep(wait);
    }
}

/// Returns the body of an answer, or the error that it reports.
fn body_of(url: &str, mut answer: Response<Body>) -> Result<impl Read + use<>, CommandFailure> {
    if !answer.status().is_success() {
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let said = serde_json::from_str::<serde_json::Value>(&text).ok();
        let said = said.and_then(|said| said.get("error")?.as_str().map(str::to_owned)).unwrap_or(text);
        return Err(match answer.status().as_u16() {
            400 => CommandFailure::Usage(said),
            _ => CommandFailure::Failed(format!("{url}: {said}")),
        });
    }
    Ok(answer.into_body().into_reader())
}

/// Sends a GET request, and returns the whole body of the answer.
pub(super) fn get_text(
    service: &ServiceArguments,
    path: &str,
    parameters: &[(&str, &str)],
) -> Result<String, CommandFailure> {
    let mut text = String::new();
    get_body(service, path, parameters)?.read_to_string(&mut text)?;
    Ok(text)
}
