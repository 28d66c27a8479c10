//! The metrics of the service, and their text for monitoring systems (OpenMetrics 1.0).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use serde::{Deserialize, Serialize};

use crate::kernel_drops::lost_in_kernel;
use crate::store::{GapCounts, WriteResult};
use crate::warnings;

/// The number of queries in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueryCounts {
    /// Queries that wait in a queue for a turn.
    pub waiting: usize,
    /// Queries that run on a thread.
    pub running: usize,
    /// Queries that are paused, or complete but not completely read.
    pub unread: usize,
}

/// Duration of a store call after which the store counts as stuck. Chosen: a healthy store needs far less than a second
/// for a transaction. With half the time, pauses of a busy disk would count as stuck. With double the time, an operator
/// would hear of a stuck store late.
const STUCK_TIME: Duration = Duration::from_secs(5);

/// The label of a metric, as name and value. Each metric has at most one label.
type Label = [(&'static str, String); 1];

/// One counter for each value of a label.
type Counters = Family<Label, Counter>;

/// One gauge for each value of a label.
type Gauges = Family<Label, Gauge>;

/// A number that only grows.
#[derive(Debug, Default, Clone)]
pub struct TotalCounter(Counter);

impl TotalCounter {
    /// Adds `many` to the number.
    pub fn add(&self, many: u64) {
        self.0.inc_by(many);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// All metrics of the service.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Number of records handed to the stores.
    pub accepted: TotalCounter,
    /// Number of frames that no decoder could read, over all protocols.
    pub frames_rejected: TotalCounter,
    /// Number of dropped records, over all reasons. For example, there was no room in the budget and the sender cannot
    /// wait.
    pub records_dropped: TotalCounter,
    rejected: Counters,
    dropped: Counters,
    adopted: Counters,
    frames: Counters,
    closed: Counters,
    connections: Gauge,
    queries: Gauges,
    queries_refused: Counters,
    tails: Gauge,
    tails_refused: Counters,
    stored: Counters,
    repeated: Counters,
    missing: Gauges,
    expired: Counters,
    quarantined: Counters,
    refused: Counters,
    outdated: Counters,
    errors: Counters,
    seconds: Family<Label, Histogram, fn() -> Histogram>,
    stores: Mutex<Vec<Arc<StoreMetrics>>>,
    ports: DatagramPorts,
}

/// The ports of the datagram sockets. The kernel counts the datagrams that it dropped at each port.
#[derive(Debug, Clone, Default)]
struct DatagramPorts(Arc<Mutex<Vec<u16>>>);

impl DatagramPorts {
    fn lost(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|port| lost_in_kernel(*port)).sum()
    }
}

/// A counter whose value is computed when the metrics are written as text.
struct ComputedCounter {
    name: &'static str,
    help: &'static str,
    number: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for ComputedCounter {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

impl Collector for ComputedCounter {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counter = ConstCounter::new((self.number)());
        let encoder = encoder.encode_descriptor(self.name, self.help, None, counter.metric_type())?;
        counter.encode(encoder)
    }
}

/// Increments a gauge, and decrements it again when dropped.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The metrics of one store.
#[derive(Debug)]
pub struct StoreMetrics {
    name: String,
    stored: Counter,
    repeated: Counter,
    missing: Gauge,
    expired: Counter,
    quarantined: Counter,
    refused: Counter,
    outdated: Counter,
    errors: Counter,
    seconds: Histogram,
    health: Mutex<Option<StoreFailure>>,
    /// Problems of the store that do not prevent it from writing records.
    problems: Mutex<Vec<String>>,
    /// Start of the store call that is running now.
    call_began: Mutex<Option<SystemTime>>,
}

/// A failing store.
#[derive(Debug, Clone)]
pub struct StoreFailure {
    /// The text of the last error.
    pub why: String,
    /// Time when the failure began.
    pub since: SystemTime,
}

/// Counts of the records and errors of a store since the service began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of the metrics")]
pub struct StoreSummary {
    pub store: String,
    pub records_stored: u64,
    pub records_repeated: u64,
    pub records_missing: u64,
    #[serde(default)]
    pub records_missing_expired: u64,
    pub records_quarantined: u64,
    pub records_refused: u64,
    #[serde(default)]
    pub records_outdated: u64,
    pub errors: u64,
    pub trouble: Option<String>,
    #[serde(default)]
    pub problems: Vec<String>,
}

fn transaction_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 14))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("logspool_service");
        let mut counters = |name: &str, help: &str| {
            let counters = Counters::default();
            registry.register(name, help, counters.clone());
            counters
        };
        let frames = counters("frames", "received frames and datagrams, by protocol");
        let rejected = counters("frames_rejected", "frames that no decoder could read, by protocol");
        let closed = counters("connections_closed", "connections closed by the service, by reason");
        let dropped = counters("records_dropped", "dropped records, by reason");
        let adopted = counters("records_adopted", "delivered records of dead programs, by destination");
        let stored = counters("records_stored", "records committed, by store");
        let repeated = counters("records_repeated", "records received again that were stored before, by store");
        let help = "missing records of numbered streams that the store no longer waits for, by store";
        let expired = counters("records_missing_expired", help);
        let quarantined = counters("records_quarantined", "records that the store could not accept, by store");
        let refused = counters("records_refused", "refused records, which their senders send again, by store");
        let outdated = counters("records_outdated", "dropped records of older epochs of their streams, by store");
        let errors = counters("store_errors", "failed transactions, by store");
        let queries_refused = counters("queries_refused", "queries answered with 429, by reason");
        let tails_refused = counters("tails_refused", "live tails answered with 429, by reason");
        let accepted = TotalCounter::default();
        registry.register("records_accepted", "records handed to the stores", accepted.0.clone());
        let connections = Gauge::default();
        registry.register("connections", "open connections", connections.clone());
        let queries = Gauges::default();
        registry.register("queries", "queries that wait, run, or have unread results, by state", queries.clone());
        let missing = Gauges::default();
        let help = "records that are missing in numbered streams now and may still arrive, by store";
        registry.register("records_missing", help, missing.clone());
        let tails = Gauge::default();
        registry.register("tails", "live tails", tails.clone());
        let ports = DatagramPorts::default();
        let number = Box::new({
            let ports = ports.clone();
            move || ports.lost()
        });
        let help = "datagrams that the kernel dropped because the service did not read them in time";
        registry.register_collector(Box::new(ComputedCounter { name: "datagrams_lost", help, number }));
        let seconds = Family::<Label, Histogram, fn() -> Histogram>::new_with_constructor(transaction_seconds);
        registry.register_with_unit(
            "transaction",
            "duration of a transaction, by store",
            Unit::Seconds,
            seconds.clone(),
        );
        Self {
            registry: Mutex::new(registry),
            accepted,
            frames_rejected: TotalCounter::default(),
            records_dropped: TotalCounter::default(),
            rejected,
            dropped,
            adopted,
            frames,
            closed,
            connections,
            queries,
            queries_refused,
            tails,
            tails_refused,
            stored,
            repeated,
            missing,
            expired,
            quarantined,
            refused,
            outdated,
            errors,
            seconds,
            stores: Mutex::default(),
            ports,
        }
    }
}

impl Metrics {
    /// The metrics of one store.
    pub fn store(&self, name: &str) -> Arc<StoreMetrics> {
        let label = [("store", name.to_owned())];
        let of = |counters: &Counters| counters.get_or_create(&label).clone();
        let store = Arc::new(StoreMetrics {
            name: name.to_owned(),
            stored: of(&self.stored),
            repeated: of(&self.repeated),
            missing: self.missing.get_or_create(&label).clone(),
            expired: of(&self.expired),
            quarantined: of(&self.quarantined),
            refused: of(&self.refused),
            outdated: of(&self.outdated),
            errors: of(&self.errors),
            seconds: self.seconds.get_or_create(&label).clone(),
            health: Mutex::default(),
            problems: Mutex::default(),
            call_began: Mutex::default(),
        });
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store.clone());
        store
    }

    /// The counter for frames of a protocol. Callers that count many frames keep the returned counter.
    pub fn frames(&self, protocol: &'static str) -> TotalCounter {
        TotalCounter(self.frames.get_or_create(&[("protocol", protocol.to_owned())]).clone())
    }

    /// Counts unreadable frames.
    pub fn reject(&self, protocol: &'static str, frames: u64) {
        self.frames_rejected.add(frames);
        self.rejected.get_or_create(&[("protocol", protocol.to_owned())]).inc_by(frames);
    }

    /// Counts dropped records.
    pub fn drop_records(&self, reason: &'static str, records: usize) {
        self.records_dropped.add(records as u64);
        self.dropped.get_or_create(&[("reason", reason.to_owned())]).inc_by(records as u64);
    }

    /// Counts records of dead programs.
    pub fn adopt(&self, to: &'static str, records: u64) {
        self.adopted.get_or_create(&[("to", to.to_owned())]).inc_by(records);
    }

    /// From now on, the metrics include the datagrams that the kernel drops at this port, on any address.
    pub fn watch_datagrams(&self, port: u16) {
        let mut ports = self.ports.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ports.contains(&port) {
            ports.push(port);
        }
    }

    /// From now on, the metrics include the log messages of the service itself that it could not write. `unsaid`
    /// returns their number.
    pub fn watch_dropped_messages(&self, unsaid: impl Fn() -> u64 + Send + Sync + 'static) {
        let help = "dropped log messages of the service itself, because standard error was too slow";
        let asked = ComputedCounter { name: "messages_dropped", help, number: Box::new(unsaid) };
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(Box::new(asked));
    }

    /// Number of datagrams that the kernel dropped at the watched ports.
    pub fn datagrams_lost(&self) -> u64 {
        self.ports.lost()
    }

    /// Counts a connection that the service closes.
    pub fn close(&self, reason: &'static str) {
        self.closed.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// Counts a connection until the guard is dropped.
    pub fn connection(&self) -> GaugeGuard {
        GaugeGuard::new(&self.connections)
    }

    /// Counts a live tail until the guard is dropped.
    pub fn tail(&self) -> GaugeGuard {
        GaugeGuard::new(&self.tails)
    }

    /// Sets the numbers of queries by state.
    pub fn count_queries(&self, counts: QueryCounts) {
        for (state, count) in [("waiting", counts.waiting), ("running", counts.running), ("unread", counts.unread)] {
            let gauge = self.queries.get_or_create(&[("state", state.to_owned())]).clone();
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Counts a query that is refused.
    pub fn refuse_query(&self, reason: &'static str) {
        self.queries_refused.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// Counts a live tail that is refused.
    pub fn refuse_tail(&self, reason: &'static str) {
        self.tails_refused.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// Number of open connections.
    pub fn connections(&self) -> u64 {
        u64::try_from(self.connections.get()).unwrap_or_default()
    }

    /// The stores that fail now, each with its name.
    pub fn failing_stores(&self) -> Vec<(String, StoreFailure)> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = |store: &Arc<StoreMetrics>| Some((store.name.clone(), store.failure()?));
        stores.iter().filter_map(trouble).collect()
    }

    /// The summary of each store.
    pub fn summaries(&self) -> Vec<StoreSummary> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|store| store.summary()).collect()
    }

    /// Returns all metrics as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).expect("text takes what is written to it");
        text
    }
}

impl StoreMetrics {
    /// Counts a successful transaction.
    pub fn count_written(&self, written: &WriteResult, took: Duration) {
        self.stored.inc_by(written.stored);
        self.repeated.inc_by(written.repeated);
        self.count_expired(written.expired);
        self.quarantined.inc_by(written.quarantined);
        self.seconds.observe(took.as_secs_f64());
        *self.lock_health() = None;
    }

    /// Sets the number of missing records, and counts those that expired.
    pub fn count_gaps(&self, gaps: GapCounts) {
        self.missing.set(i64::try_from(gaps.open).unwrap_or(i64::MAX));
        self.count_expired(gaps.expired);
    }

    /// Counts missing records that the store would not take any more, and says so.
    fn count_expired(&self, records: u64) {
        if records > 0 {
            self.expired.inc_by(records);
            warnings::warn("records_missing_expired", None, || {
                format!(
                    "{records} missing records of a stream are given up: it was silent for 7 days, began a new epoch, \
                     or has more than 64 gaps"
                )
            });
        }
    }

    /// Counts records that the store refused: a newer connection sends them.
    pub fn count_refused(&self, records: u64) {
        self.refused.inc_by(records);
    }

    /// Counts records that the store can never take, because it has a newer epoch of their stream.
    pub fn count_outdated(&self, records: u64) {
        self.outdated.inc_by(records);
    }

    /// Counts a failed transaction.
    pub fn count_failed(&self, why: &str) {
        self.errors.inc();
        self.mark_failing(why);
    }

    /// Records the result of a check of the store.
    pub fn record_check<E: fmt::Display>(&self, answered: &Result<(), E>) {
        match answered {
            Ok(()) => *self.lock_health() = None,
            Err(why) => self.mark_failing(&why.to_string()),
        }
    }

    /// Sets the problems with stored records that do not prevent the store from writing new records.
    pub fn note_problems(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    /// Runs a store call that may hang. If the call takes longer than `STUCK_TIME`, the store counts as failing until
    /// the call returns.
    pub fn watch_call<T>(&self, work: impl FnOnce() -> T) -> T {
        let since = |time| *self.call_began.lock().unwrap_or_else(PoisonError::into_inner) = time;
        since(Some(SystemTime::now()));
        let done = work();
        since(None);
        done
    }

    /// The current failure of the store: its last error, or a call that takes too long.
    fn failure(&self) -> Option<StoreFailure> {
        let known = self.lock_health().clone();
        let since = *self.call_began.lock().unwrap_or_else(PoisonError::into_inner);
        known.or_else(|| {
            let since = since?;
            let waited = since.elapsed().ok().filter(|waited| *waited >= STUCK_TIME)?;
            Some(StoreFailure { why: format!("it has not answered for {} s", waited.as_secs()), since })
        })
    }

    fn mark_failing(&self, why: &str) {
        let mut health = self.lock_health();
        let since = health.as_ref().map_or_else(SystemTime::now, |trouble| trouble.since);
        *health = Some(StoreFailure { why: why.to_owned(), since });
    }

    fn summary(&self) -> StoreSummary {
        StoreSummary {
            store: self.name.clone(),
            records_stored: self.stored.get(),
            records_repeated: self.repeated.get(),
            records_missing: u64::try_from(self.missing.get()).unwrap_or_default(),
            records_missing_expired: self.expired.get(),
            records_quarantined: self.quarantined.get(),
            records_refused: self.refused.get(),
            records_outdated: self.outdated.get(),
            errors: self.errors.get(),
            trouble: self.failure().map(|trouble| trouble.why),
            problems: self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn lock_health(&self) -> std::sync::MutexGuard<'_, Option<StoreFailure>> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_two_addresses_is_counted_once() {
        let metrics = Metrics::default();
        for port in [9021, 9022, 9021] {
            metrics.watch_datagrams(port);
        }

        assert_eq!([9021, 9022][..], *metrics.ports.0.lock().unwrap());
    }

    #[test]
    fn the_text_has_all_counts() {
        let metrics = Metrics::default();
        let store = metrics.store("sqlite");
        store.count_written(
            &WriteResult { stored: 3, repeated: 2, expired: 6, ..WriteResult::default() },
            Duration::from_millis(3),
        );
        store.count_gaps(GapCounts { open: 9, expired: 1 });
        metrics.frames("pickle").add(5);
        metrics.reject("pickle", 1);
        metrics.drop_records("udp_full", 4);
        let connection = metrics.connection();
        let text = metrics.text();
        drop(connection);

        for line in [
            "logspool_service_records_stored_total{store=\"sqlite\"} 3",
            "logspool_service_records_repeated_total{store=\"sqlite\"} 2",
            "logspool_service_records_missing{store=\"sqlite\"} 9",
            "logspool_service_records_missing_expired_total{store=\"sqlite\"} 7",
            "logspool_service_frames_total{protocol=\"pickle\"} 5",
            "logspool_service_frames_rejected_total{protocol=\"pickle\"} 1",
            "logspool_service_records_dropped_total{reason=\"udp_full\"} 4",
            "logspool_service_connections 1",
            "logspool_service_transaction_seconds_count{store=\"sqlite\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(0, metrics.connections());
    }

    #[test]
    fn a_store_counts_as_failing_until_it_writes_again() {
        let metrics = Metrics::default();
        let store = metrics.store("sqlite");
        assert!(metrics.failing_stores().is_empty());

        store.count_failed("disk full");
        let first = metrics.failing_stores();
        store.count_failed("disk still full");
        let second = metrics.failing_stores();
        assert_eq!(("sqlite", "disk still full"), (&*second[0].0, &*second[0].1.why));
        assert_eq!(first[0].1.since, second[0].1.since);

        store.count_written(&WriteResult::default(), Duration::ZERO);
        assert!(metrics.failing_stores().is_empty());

        store.record_check(&Err("away"));
        assert_eq!("away", metrics.failing_stores()[0].1.why);
        store.record_check::<&str>(&Ok(()));
        assert!(metrics.failing_stores().is_empty());
    }

    #[test]
    fn a_store_that_does_not_answer_counts_as_failing_until_it_does() {
        let metrics = Metrics::default();
        let store = metrics.store("postgres");
        store.watch_call(|| {
            assert!(metrics.failing_stores().is_empty());
            *store.call_began.lock().unwrap() = Some(SystemTime::now() - STUCK_TIME);
            assert_eq!("it has not answered for 5 s", metrics.failing_stores()[0].1.why);
        });
        assert!(metrics.failing_stores().is_empty());
    }
}
