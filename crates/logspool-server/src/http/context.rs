//! The parts of the service that handlers use.

use std::sync::Arc;

use super::access::RequestAccess;
use crate::config::Limits;
use crate::intake::Intake;
use crate::questions::Questions;
use crate::stop::Stop;
use crate::stores::Answers;

/// The parts of the service that handlers use.
#[derive(Clone)]
pub(crate) struct Context {
    pub intake: Arc<Intake>,
    /// The store that answers queries: the first one.
    pub answers: Option<Arc<dyn Answers>>,
    /// Runs queries.
    pub questions: Questions,
    pub limits: Limits,
    pub access: RequestAccess,
    pub stop: Stop,
}
