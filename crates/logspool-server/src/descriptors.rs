//! The limit of open files of the process (RLIMIT_NOFILE), and the part of it that connections may use.
//!
//! If connections took all descriptors, stores and queries could not open their files, and a health check could not
//! connect to report this. So descriptors for everything except connections are reserved first. Connections share the
//! remaining descriptors.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::Config;
use crate::connection::admission::SlotCounts;

/// Number of reserved slots for listeners that accept only HTTP. They are used when the general pool refuses a
/// connection.
///
/// Chosen: one address gets a third of the slots. This is enough for a few monitoring systems and a person with a
/// browser. Each slot costs a descriptor, and memory only while it is used.
const HTTP_RESERVE: usize = 64;

/// Number of reserved slots for listeners that accept every protocol. A connection holds such a slot until its first
/// bytes show whether it speaks HTTP. Chosen: fewer slots than [`HTTP_RESERVE`], because every refused sender also uses
/// a slot for a moment.
const FIRST_BYTES_RESERVE: usize = 16;

/// Descriptors of the process itself: standard streams, the runtime, signals, and files that are read once.
///
/// Measured: an idle service has 9 open descriptors in addition to its listeners and stores; the others are a margin.
const PER_PROCESS: usize = 32;

/// Descriptors per store. A SQLite store has at most 14 open, when the day changes: the lock, the catalog, and the
/// database files and index files of two days, with three descriptors for each database. Within one day it has 8
/// (measured). A PostgreSQL store has a few connections.
const PER_STORE: usize = 16;

/// Descriptors per query thread. Each thread opens the catalog, and the file and the index of one day (measured: 7
/// descriptors). A paused answer keeps no descriptor open.
const PER_QUERY_THREAD: usize = 8;

/// Descriptors per folder of `adopt`: the queue of a dead process, and the files to which its records are appended.
const PER_ADOPTED_FOLDER: usize = 16;

/// Minimum number of descriptors for connections; with fewer the service does not start.
const MIN_DESCRIPTORS: usize = 16;

/// Raises the limit of open files if needed and allowed. Returns how many connections of each kind fit into the limit.
///
/// # Errors
///
/// The limit is too low for the service to work.
pub fn divide(config: &Config) -> Result<SlotCounts, String> {
    let (own, wanted) = (reserved(config), wanted_for_connections(config));
    let allowed = raise_limit((own + wanted) as u64);
    let sizes = sizes(config.limits.connections, allowed.saturating_sub(own));
    let fix = format!(
        "this process may open {allowed} files (RLIMIT_NOFILE), and {own} are needed for other purposes than \
         connections: raise the \
         limit to {} (LimitNOFILE= in systemd, ulimit -n in a shell)",
        own + wanted
    );
    if sizes.general == 0 {
        return Err(format!("cannot serve connections: {fix}"));
    }
    if sizes.general < config.limits.connections {
        tracing::warn!(
            "limits.connections is {}, but only {} connections can be open, and {} more for HTTP: {fix}",
            config.limits.connections,
            sizes.general,
            sizes.http + sizes.first_bytes,
        );
    }
    Ok(sizes)
}

/// Number of descriptors that connections use at most.
fn wanted_for_connections(config: &Config) -> usize {
    config.limits.connections.saturating_add(HTTP_RESERVE + FIRST_BYTES_RESERVE)
}

/// Number of descriptors for everything except connections.
fn reserved(config: &Config) -> usize {
    // Each listener has its socket, and an accepted connection that may be refused.
    let listeners = 2 * (config.listen.len() + 1);
    let queries = PER_QUERY_THREAD * config.limits.query_threads;
    PER_PROCESS + listeners + PER_STORE * (config.store.len() + 1) + queries + PER_ADOPTED_FOLDER * config.adopt.len()
}

/// Divides `descriptors` among the pools. If there are too few, [`HTTP_RESERVE`] shrinks to a quarter and
/// [`FIRST_BYTES_RESERVE`] to an eighth of `descriptors`.
fn sizes(connections: usize, descriptors: usize) -> SlotCounts {
    if descriptors < MIN_DESCRIPTORS {
        return SlotCounts { general: 0, http: 0, first_bytes: 0 };
    }
    let (http, first_bytes) = (HTTP_RESERVE.min(descriptors / 4), FIRST_BYTES_RESERVE.min(descriptors / 8));
    SlotCounts { general: connections.min(descriptors - http - first_bytes), http, first_bytes }
}

/// Raises the limit to `needed`, or to the hard limit if that is lower. Returns the limit now in force.
fn raise_limit(needed: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    let raised = needed.min(limit.maximum.unwrap_or(u64::MAX));
    let holds = if soft < raised {
        let new = rustix::process::Rlimit { current: Some(raised), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, new).is_ok() { raised } else { soft }
    } else {
        soft
    };
    usize::try_from(holds).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_descriptors_leave_the_limit_as_it_is() {
        let all = SlotCounts { general: 4096, http: 64, first_bytes: 16 };
        assert_eq!(all, sizes(4096, 4096 + 64 + 16));
        assert_eq!(all, sizes(4096, usize::MAX));
        assert_eq!(4095, sizes(4096, 4096 + 64 + 15).general);
        assert_eq!(1, sizes(1, 4096).general);
    }

    #[test]
    fn few_descriptors_are_divided_so_that_http_keeps_its_part() {
        for descriptors in MIN_DESCRIPTORS..1000 {
            let SlotCounts { general, http, first_bytes } = sizes(4096, descriptors);
            assert_eq!(descriptors, general + http + first_bytes);
            assert!(general >= descriptors / 2 && http >= 4 && first_bytes >= 2, "{descriptors}");
        }
        assert_eq!(0, sizes(4096, MIN_DESCRIPTORS - 1).general);
    }

    #[test]
    fn every_listener_store_and_folder_has_its_part() {
        let small = Config::parse("listen = []").unwrap();
        let large = "listen = [\"tcp://127.0.0.1:1\"]\nstore = [\"sqlite:a\", \"sqlite:b\"]\nadopt = [\"/dev/shm/q\"]";
        assert_eq!(2 + PER_STORE + PER_ADOPTED_FOLDER, reserved(&Config::parse(large).unwrap()) - reserved(&small));
        // With the default configuration, a limit of 1,024 open files leaves room for a few hundred connections.
        assert!(reserved(&Config::default()) < 200);
    }
}
