//! HTTP requests to a running service.

use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ureq::http::StatusCode;
use ureq::http::header::RETRY_AFTER;

use super::failure::CommandFailure;

/// How long to retry while the service has no room for the query. Chosen: within this time the service completes other
/// queries, and a person still waits for it.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// The service to ask.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArguments {
    /// The service to ask.
    #[arg(long = "service", value_name = "URL", default_value = "http://127.0.0.1:9080", env = "LOGSPOOL_SERVICE")]
    pub url: String,
    /// Its token, where it asks for one.
    #[arg(long, value_name = "TOKEN", env = "LOGSPOOL_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Sends a GET request, and returns the body of the answer as a stream. If the service has no room for the query, the
/// request is repeated for up to [`RETRY_TIME`].
pub(super) fn get_body(
    service: &ServiceArguments,
    path: &str,
    parameters: &[(&str, &str)],
) -> Result<impl Read + use<>, CommandFailure> {
    let url = format!("{}{path}", service.url.trim_end_matches('/'));
    let agent = ureq::Agent::new_with_config(ureq::Agent::config_builder().http_status_as_error(false).build());
    let began = Instant::now();
    let mut answer = loop {
        let mut request = agent.get(&url).query_pairs(parameters.iter().copied());
        if let Some(token) = &service.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = request.call().map_err(|error| {
            CommandFailure::Failed(format!(
                "cannot reach {url}: {error}; is the service running? `logspool serve` starts one"
            ))
        })?;
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let wait = Duration::from_secs(seconds.unwrap_or(1));
        if answer.status() != StatusCode::TOO_MANY_REQUESTS || began.elapsed() + wait > RETRY_TIME {
            break answer;
        }
        sleep(wait);
    };
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
