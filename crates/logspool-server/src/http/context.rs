//! The parts that requests are answered from.

use std::sync::Arc;

use super::access::Access;
use crate::config::Limits;
use crate::intake::Intake;
use crate::questions::Questions;
use crate::stop::Stop;
use crate::stores::Answers;

/// What requests are answered from.
#[derive(Clone)]
pub(crate) struct Context {
    pub intake: Arc<Intake>,
    /// The store that answers questions: the first one.
    pub answers: Option<Arc<dyn Answers>>,
    /// Has questions answered.
    pub questions: Questions,
    pub limits: Limits,
    pub access: Access,
    pub stop: Stop,
}
