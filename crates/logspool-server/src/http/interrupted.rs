//! Adds the reason to an interrupted answer, as its last line.
//!
//! When the store finds a damaged page in the middle of an answer, the HTTP status has already been sent. So the reason
//! is sent as the last line. Then the connection is closed without the regular end of the body. A client that does not
//! know this line still sees that the answer is incomplete.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::show::Format;
use crate::visible::visible;

/// Time for sending the last line before the connection is closed, which discards unsent data. Chosen: a client that
/// reads gets the line within this time. A client that does not read still sees that the answer is incomplete.
const LAST_LINE_TIME: Duration = Duration::from_millis(250);

/// Adds the reason as a last line if the answer is interrupted.
pub(super) fn with_reason(answer: Body, format: Format) -> Body {
    let told = answer.into_data_stream().flat_map(move |piece| match piece {
        Ok(piece) => stream::iter([Ok(piece)]).left_stream(),
        Err(error) => {
            let line = line(format, &error.to_string());
            let end = async move {
                tokio::time::sleep(LAST_LINE_TIME).await;
                Err(error)
            };
            stream::iter([Ok(Bytes::from(line))]).chain(stream::once(Box::pin(end))).right_stream()
        }
    });
    Body::from_stream(told)
}

fn line(format: Format, why: &str) -> String {
    match format {
        // No row of an answer has the single key `error`.
        Format::Ndjson => json!({ "error": why }).to_string() + "\n",
        Format::Text => format!("error: this answer is not complete: {}\n", visible(why)),
        Format::Csv => format!("\"error: this answer is not complete: {}\"\r\n", why.replace('"', "\"\"")),
    }
}

/// Returns the reason why an answer was interrupted, if `line` is the last line that states it.
pub fn reason(line: &str) -> Option<String> {
    // Parse only lines that begin like the reason. Of all rows, only a count by a field named `error` also begins so.
    let line = line.strip_prefix("{\"error\":").map(|_| line)?;
    match serde_json::from_str(line) {
        Ok(Value::Object(row)) if row.len() == 1 => row["error"].as_str().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test]
    async fn an_interrupted_answer_has_the_reason_in_its_last_line_and_no_regular_end() {
        let pieces = [Ok(Bytes::from("{\"message\":\"a\"}\n")), Err(io::Error::other("page 7 of \"x\" is damaged"))];
        let mut answer = with_reason(Body::from_stream(stream::iter(pieces)), Format::Ndjson).into_data_stream();

        assert_eq!("{\"message\":\"a\"}\n", answer.next().await.unwrap().unwrap());
        let last = answer.next().await.unwrap().unwrap();
        assert_eq!(Some("page 7 of \"x\" is damaged".to_owned()), reason(str::from_utf8(&last).unwrap().trim_end()));
        assert!(answer.next().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_complete_answer_stays_as_it_is() {
        let pieces = [Ok::<_, io::Error>(Bytes::from("a\n")), Ok(Bytes::from("b\n"))];
        let answer = with_reason(Body::from_stream(stream::iter(pieces)), Format::Text);

        assert_eq!("a\nb\n", axum::body::to_bytes(answer, 99).await.unwrap());
    }

    #[test]
    fn rows_are_not_mistaken_for_reasons() {
        for row in [r#"{"error":"x","count":2}"#, r#"{"message":"x"}"#, r#"{"error":"#, r#"{"error":null}"#, ""] {
            assert_eq!(None, reason(row));
        }
    }
}
