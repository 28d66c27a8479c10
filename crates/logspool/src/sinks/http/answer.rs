//! The answer to a request, and what a status other than success means for the records of the request.

use std::io;
use std::time::Duration;

/// Maximum number of characters of an answer that an error shows.
const SHOWN_CHARACTERS: usize = 200;

/// What a receiver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// How long the receiver asks to wait.
    pub retry_after: Option<Duration>,
    /// Where the receiver redirects to.
    pub location: Option<String>,
    /// Type of the body, in small letters and without parameters.
    pub content_type: Option<String>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
}

/// What to do after an answer.
#[derive(Debug)]
pub enum AnswerVerdict {
    /// The records were accepted, perhaps not all of them: the format reads the body.
    Accepted,
    /// Send the same records again later.
    Again(io::Error),
    /// The request is too long, or one of its records is bad: send two halves. A single record is refused.
    Halve(io::Error),
}

impl HttpAnswer {
    /// Decides by the status.
    pub fn verdict(&self) -> AnswerVerdict {
        match self.status {
            200..=299 => AnswerVerdict::Accepted,
            300..=399 => {
                let place = self.location.as_deref().unwrap_or("another address");
                self.again(&format!("it redirects to {place} (fix: that place as address)"))
            }
            401 => self.again("it wants another name or secret (fix: user and password, token, or headers)"),
            403 => self.again("this program may not write there (fix: the rights of its user or token)"),
            404 | 405 => {
                self.again("there is no such interface (fix: address, with the path in front of the interface)")
            }
            407 => self.again("a proxy wants a name and a secret (fix: the variables of the proxy)"),
            408 | 425 | 429 | 500..=599 => self.again("it cannot take records now"),
            413 => AnswerVerdict::Halve(self.error("the request is too long (fix: batch_bytes)")),
            // Only these two can be about what a record contains.
            400 | 422 => AnswerVerdict::Halve(self.error("it refuses the request")),
            _ => self.again("it refuses every request (fix: what it names, or address)"),
        }
    }

    fn again(&self, why: &str) -> AnswerVerdict {
        AnswerVerdict::Again(self.error(why))
    }

    /// Whether the body is of a type that ends like this: `json` is also the end of `application/problem+json`.
    pub fn is_of_type(&self, end: &str) -> bool {
        self.content_type.as_deref().is_some_and(|kind| kind.ends_with(end))
    }

    /// The reason why an answer with a status of success is not of the interface, as a login page of a proxy.
    pub fn of_another_kind(&self, receiver: &str) -> String {
        let kind = self.content_type.as_deref().unwrap_or("no content type");
        self.error(&format!("this is no answer of {receiver}, but {kind} (fix: address, or the proxy in between)"))
            .to_string()
    }

    /// An error with the status, a reason, and the beginning of the body.
    pub fn error(&self, why: &str) -> io::Error {
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.trim().chars().take(SHOWN_CHARACTERS).map(shown).collect();
        let colon = if body.is_empty() { "" } else { ": " };
        io::Error::other(format!("the receiver answers {}: {why}{colon}{body}", self.status))
    }
}

fn shown(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_says_what_to_do_next() {
        let verdict = |status| {
            let answer = HttpAnswer {
                status,
                retry_after: None,
                location: None,
                content_type: None,
                body: b"be\ncause".to_vec(),
            };
            match answer.verdict() {
                AnswerVerdict::Accepted => "accepted".to_owned(),
                AnswerVerdict::Again(error) => format!("again: {error}"),
                AnswerVerdict::Halve(error) => format!("halve: {error}"),
            }
        };
        for status in [200, 202, 204] {
            assert_eq!("accepted", verdict(status));
        }
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(
                format!("again: the receiver answers {status}: it cannot take records now: be cause"),
                verdict(status)
            );
        }
        for status in [301, 308, 401, 402, 403, 404, 405, 406, 407, 409, 410, 414, 415, 421, 426, 428, 431, 451, 499] {
            assert!(verdict(status).starts_with("again: ") && verdict(status).contains("(fix: "), "{status}");
        }
        for status in [400, 413, 422] {
            assert!(verdict(status).starts_with("halve: "), "{status}");
        }
    }
}
