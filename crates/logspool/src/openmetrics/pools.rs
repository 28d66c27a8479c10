//! Metrics of thread pools on the page of [`crate::openmetrics`].

use logspool_pool::PoolReading;

use super::page::MetricsPage;

/// Name, kind, help text and value of each family except the histograms.
type Family = (&'static str, &'static str, &'static str, fn(&PoolReading) -> f64);

const FAMILIES: [Family; 11] = [
    ("pool_queue_jobs", "gauge", "Jobs that wait for a worker.", |pool| pool.counts.pending as f64),
    ("pool_queue_capacity_jobs", "gauge", "Most jobs that may wait, 0 for no bound.", |pool| pool.counts.bound as f64),
    ("pool_oldest_job_age_seconds", "gauge", "Age of the oldest job that waits.", |pool| pool.oldest_age),
    ("pool_delayed_jobs", "gauge", "Jobs that are not due yet.", |pool| pool.counts.expected as f64),
    ("pool_workers", "gauge", "Worker threads.", |pool| pool.counts.workers as f64),
    ("pool_busy_workers", "gauge", "Workers that do a job.", |pool| pool.counts.busy as f64),
    ("pool_jobs", "counter", "Jobs taken.", |pool| pool.counts.taken as f64),
    ("pool_jobs_failed", "counter", "Jobs without a future that raised.", |pool| pool.failed as f64),
    ("pool_jobs_dropped", "counter", "Jobs that gave way to newer ones.", |pool| pool.dropped as f64),
    ("pool_jobs_timed_out", "counter", "Jobs that ran longer than they may.", |pool| pool.timed_out as f64),
    ("pool_wakes", "counter", "Times a sleeping worker was woken.", |pool| pool.counts.wakes as f64),
];

/// Adds the families of thread pools to a page.
pub(super) fn families(page: &mut MetricsPage, pools: &[PoolReading]) {
    for (name, kind, help, value) in FAMILIES {
        page.family(name, kind, help);
        let sample = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        for pool in pools {
            page.sample(&sample, &[("pool", &pool.name)], value(pool));
        }
    }
    page.family("pool_wait_seconds", "histogram", "How long jobs waited for a worker.");
    for pool in pools {
        page.histogram("pool_wait_seconds", ("pool", &pool.name), &pool.wait_seconds);
    }
    page.family("pool_run_seconds", "histogram", "How long jobs ran.");
    for pool in pools {
        page.histogram("pool_run_seconds", ("pool", &pool.name), &pool.run_seconds);
    }
}
