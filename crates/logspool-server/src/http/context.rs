//! The parts of the service that handlers use.

use std::sync::Arc;

use super::access::AccessControl;
use crate::intake::Intake;
use crate::limits::Limits;
use crate::query_memory::CountMemory;
use crate::scheduler::QueryScheduler;
use crate::stop::StopSignal;
use crate::stores::QueryReader;

/// The parts of the service that handlers use.
#[derive(Clone)]
pub(crate) struct Context {
    pub intake: Arc<Intake>,
    /// The store that answers queries: the first one.
    pub reader: Option<Arc<dyn QueryReader>>,
    /// Schedules the queries.
    pub scheduler: QueryScheduler,
    /// The memory of the steps of all queries.
    pub memory: CountMemory,
    pub limits: Limits,
    pub access: AccessControl,
    pub stop: StopSignal,
}
