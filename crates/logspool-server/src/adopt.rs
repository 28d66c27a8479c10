//! Adoption delivers the records that dead programs of this machine left in their queue folders. The programs need not
//! be started again.
//!
//! One thread checks the folders once a second. The crate `logspool` (`logspool::recover`) finds the owners of the
//! files, the dead programs, and other processes that recover the same files. This module decides where records are
//! delivered, and takes the records for this service. They pass the intake like chunks of a connection: in the stream
//! of the dead client, and with the numbers that the client gave them. So the mark of the stream prevents that a record is
//! stored twice, even if the client had already sent it.
//!
//! | records for | of this user's programs | of another user's (as root) |
//! |---|---|---|
//! | this service | into its stores | into its stores |
//! | another service | sent there | into the stores of this one |
//! | a file | appended to it | into the stores: no path of another user is ever opened |
//! | a terminal or pipe | dropped | dropped |

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use logspool::recover::{self, AdoptedRecords, Adopter, FileAction, Reason, Report};
use logspool_record::address::{HostPort, ServiceAddress};
use tokio::runtime::Handle;

use crate::address::{Endpoint, ListenAddress};
use crate::batch::Batch;
use crate::connection::frame_reader::FrameReader;
use crate::connection::input::MAX_MESSAGE_FRAMES;
use crate::decoders::forward::{self, ChunkId};
use crate::delivery::{Chunk, Outcome};
use crate::intake::Intake;
use crate::peer::Peer;
use crate::protocols::forward::FORWARD;
use crate::record::Record;
use crate::value::Value;

/// Interval between checks of the folders.
///
/// Chosen: the last records of a program are stored before a person looks for them. Halving the interval would wake an
/// idle machine twice as often.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The first and the longest pause before a file that could not be adopted is tried again. Each try copies some
/// megabytes, because it reads the file.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// The logger name of adopted records that were lines of text for a file.
pub const ADOPTED_LOGGER: &str = "logspool.adopted";

/// The thread that adopts records.
#[derive(Debug)]
pub struct Adoption {
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl Adoption {
    /// Starts to adopt records from `folders`. `listeners` are the addresses of this service.
    ///
    /// # Errors
    ///
    /// A folder cannot be adopted, or the thread cannot be started. The text names the folder and the reason, and says
    /// how to fix it.
    pub fn start(
        folders: &[PathBuf],
        listeners: &[ListenAddress],
        frame_bytes: usize,
        intake: &Arc<Intake>,
    ) -> Result<Self, String> {
        let mut looks = Vec::new();
        for folder in folders {
            check(folder)?;
            looks.push(FolderAdoption {
                folder: folder.clone(),
                listeners: listeners.to_vec(),
                record_bytes: frame_bytes.saturating_mul(MAX_MESSAGE_FRAMES),
                intake: intake.clone(),
                runtime: Handle::current(),
                unadopted: Mutex::default(),
                last_error: String::new(),
            });
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            loop {
                looks.iter_mut().for_each(FolderAdoption::adopt_now);
                if stopped.recv_timeout(CHECK_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("adopt".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start the thread that adopts: {error}"))?;
        Ok(Self { stop: Some(stop), thread })
    }

    /// Tells the thread to start no further adoption.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until the thread ends, but not longer than `until`. If an adoption is not finished by then, another
    /// process repeats it later.
    pub fn finish(mut self, until: Instant) {
        self.stop();
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Checks that a folder can be adopted. A missing folder is valid if it has the usual name of a queue folder, because
/// programs create it.
fn check(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    let why = match recover::check_adoption(folder) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let is_made_by_programs = folder
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("logspool-")?.parse::<u32>().ok())
        .is_some_and(|_| folder.parent().is_some_and(Path::is_dir));
    match why.kind() {
        ErrorKind::NotFound if is_made_by_programs => {
            tracing::info!("nothing to adopt in {shown} yet: no program has created it");
            Ok(())
        }
        ErrorKind::NotFound => Err(format!(
            "cannot adopt {shown}: the folder does not exist (fix: create it with mode 0700, or name the queue \
             folder of the \
             programs, /dev/shm/logspool-UID)"
        )),
        ErrorKind::NotADirectory => Err(format!(
            "cannot adopt {shown}: it is not a folder (fix: name the queue folder of the programs, \
             /dev/shm/logspool-UID)"
        )),
        _ => Err(format!("cannot adopt {shown}: {why}")),
    }
}

/// The adoption of records from one folder.
struct FolderAdoption {
    folder: PathBuf,
    listeners: Vec<ListenAddress>,
    record_bytes: usize,
    intake: Arc<Intake>,
    runtime: Handle,
    /// The files that could not be adopted, by file name.
    unadopted: Mutex<HashMap<String, UnadoptedFile>>,
    /// The last error of the folder that was logged. The same error is not logged again.
    last_error: String,
}

/// A file that could not be adopted.
#[derive(Debug, Clone, Default)]
struct UnadoptedFile {
    retry_at: Option<Instant>,
    pause: Duration,
    reported: String,
}

impl FolderAdoption {
    fn adopt_now(&mut self) {
        match recover::adopt(&self.folder, self) {
            Ok(report) => {
                self.last_error.clear();
                self.report(&report);
            }
            // The last program that ends removes the folder, so a missing folder is no error.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let error = error.to_string();
                if error != self.last_error {
                    tracing::error!("cannot adopt {}: {error}", self.folder.display());
                    self.last_error = error;
                }
            }
        }
    }

    fn report(&self, report: &Report) {
        let from = self.folder.display();
        let metrics = &self.intake.metrics;
        for delivered in &report.delivered {
            let (records, path) = (delivered.records, delivered.path.display());
            let is_sent = service_address(&delivered.path).is_some();
            let (to, what) = match (delivered.taken, is_sent) {
                (true, _) => ("store", "stored"),
                (false, true) => ("service", "sent"),
                (false, false) => ("file", "appended"),
            };
            metrics.adopt(to, records);
            tracing::info!("adopted from {from}: {records} records for {path} {what}");
        }
        for removed in report.removed.iter().filter(|removed| removed.discarded > 0) {
            metrics.adopt("nowhere", removed.discarded);
            let (records, pid) = (removed.discarded, removed.pid);
            tracing::warn!("adopted from {from}: {records} records of process {pid} for its terminal or pipe dropped");
        }
        if report.torn_lines > 0 {
            tracing::warn!("adopted from {from}: {} torn lines ended with a line break", report.torn_lines);
        }
        let mut left = self.unadopted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // Forget a file whose retry was due but that the report does not list again: the file is gone, or another
        // process adopts it.
        left.retain(|name, left| {
            left.retry_at.is_some_and(|again| again > now) || report.kept.iter().any(|kept| kept.name == *name)
        });
        for kept in &report.kept {
            if kept.reasons == [Reason::InWork] {
                continue;
            }
            let left = left.entry(kept.name.clone()).or_default();
            left.pause = (left.pause * 2).clamp(RETRY_PAUSES.0, RETRY_PAUSES.1);
            left.retry_at = Some(now + left.pause);
            let mut said = String::new();
            for reason in &kept.reasons {
                let _ = write!(said, "; {reason}");
            }
            if said != left.reported {
                tracing::warn!("not adopted from {from}: records of process {}{said}", kept.pid);
                left.reported = said;
            }
        }
    }

    /// Converts the records to a batch.
    fn batch(&self, taken: &AdoptedRecords<'_>) -> Batch {
        let mut reader = FrameReader::new(&FORWARD, local_peer(), &self.intake.metrics);
        let is_entry = service_address(taken.place).is_some();
        let limits = forward::ForwardLimits { frame: self.record_bytes, ..forward::ForwardLimits::default() };
        for (bytes, mark) in taken.records() {
            if bytes.len() > self.record_bytes {
                reader.reject(bytes, &format!("it is longer than {} bytes", self.record_bytes));
            } else if is_entry {
                match forward::entry(bytes, &limits) {
                    Ok(record) => reader.push(&record),
                    Err(error) => reader.reject(bytes, &error.to_string()),
                }
            } else {
                let line = String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(bytes));
                let path = taken.place.to_string_lossy();
                reader.push(&Record {
                    time_ns: mark.seconds.checked_mul(1_000_000_000),
                    level: mark.level,
                    logger: Cow::Borrowed(ADOPTED_LOGGER),
                    message: line,
                    fields: vec![(Cow::Borrowed("path"), Value::Text(path))],
                    ..Record::default()
                });
            }
        }
        reader.take()
    }
}

impl Adopter for FolderAdoption {
    fn looks_at(&self, name: &str) -> bool {
        let left = self.unadopted.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(name).and_then(|left| left.retry_at).is_none_or(|again| again <= Instant::now())
    }

    fn action(&self, place: &Path) -> FileAction {
        let is_ours = service_address(place)
            .is_some_and(|address| self.listeners.iter().any(|listener| is_served_by(&address, listener)));
        if is_ours { FileAction::Take } else { FileAction::Append }
    }

    fn take(&self, taken: &AdoptedRecords<'_>) -> io::Result<()> {
        let batch = self.batch(taken);
        let records = batch.len();
        let last = taken.first + records as u64 - 1;
        let id = format!("{:032x}/{}/{}-{last}", taken.stream.id, taken.stream.epoch, taken.first);
        let Some(ChunkId { stream, epoch, first, last }) = ChunkId::parse(&id) else {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("its stream has an invalid id: {id}")));
        };
        let chunk = Chunk { stream: stream.to_owned(), epoch, first, last, end: false };
        // From here on, chunks that still arrive on the dead client's connection are refused. `taken` has the records
        // of these chunks too.
        let fence = self.intake.take_stream(stream);
        let outcome = self.runtime.block_on(async {
            let room = self.intake.room_for(local_peer().origin(), &batch).await;
            self.intake.submit(batch, Some((chunk, fence)), room).await
        });
        match outcome {
            Ok(Outcome::Committed) => Ok(()),
            Ok(Outcome::Dropped(why)) => {
                tracing::warn!("dropped {records} records of a dead program: {}", why.text());
                Ok(())
            }
            Ok(Outcome::Refused) => Err(io::Error::other("another sender uses its stream now")),
            Err(_) => Err(io::Error::other("the service is shutting down")),
        }
    }
}

/// Returns the peer that counts as the sender of adopted records: the user of the service.
fn local_peer() -> Peer {
    Peer::local(rustix::process::getuid().as_raw())
}

fn service_address(place: &Path) -> Option<ServiceAddress> {
    place.to_str()?.parse().ok()
}

/// True if data that a client sends to `address`, or to one address of its list, arrives at `listener`. Host names
/// except `localhost` are not looked up: then the result is false, and the records are sent over the network.
fn is_served_by(address: &ServiceAddress, listener: &ListenAddress) -> bool {
    if listener.protocol.is_some_and(|protocol| *protocol != FORWARD) {
        return false;
    }
    let is_at = |HostPort { host, port }: &HostPort, at: &SocketAddr| {
        let host = if host == "localhost" { Some(IpAddr::V4(Ipv4Addr::LOCALHOST)) } else { host.parse().ok() };
        let reaches = |host: IpAddr| host == at.ip() || at.ip().is_unspecified() && host.is_loopback();
        *port == at.port() && host.is_some_and(reaches)
    };
    match (address, &listener.endpoint) {
        (ServiceAddress::Tcp { hosts }, Endpoint::Tcp(at)) | (ServiceAddress::Tls { hosts, .. }, Endpoint::Tls(at)) => {
            hosts.iter().any(|host| is_at(host, at))
        }
        (ServiceAddress::Unix { path }, Endpoint::Unix(at)) => {
            std::path::absolute(at).is_ok_and(|at| at == Path::new(path))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_service_are_recognised() {
        for (expected, address, listener) in [
            (true, "tcp://127.0.0.1:9020", "tcp://127.0.0.1:9020"),
            (true, "tcp://localhost:9020", "tcp://127.0.0.1:9020"),
            (true, "tcp://127.0.0.1:9020", "tcp://0.0.0.0:9020?protocol=forward"),
            (true, "tcp://192.0.2.1:9020,127.0.0.1:9020", "tcp://127.0.0.1:9020"),
            (true, "tls://logs:9443,127.0.0.1:9443", "tls://127.0.0.1:9443"),
            (false, "tcp://127.0.0.1:9021,192.0.2.1:9020", "tcp://127.0.0.1:9020"),
            (true, "unix:///run/logspool.sock", "unix:///run/logspool.sock"),
            (true, "tls://127.0.0.1:9443", "tls://127.0.0.1:9443"),
            (false, "tcp://127.0.0.1:9021", "tcp://127.0.0.1:9020"),
            (false, "tcp://192.0.2.1:9020", "tcp://0.0.0.0:9020"),
            (false, "tcp://logs:9020", "tcp://127.0.0.1:9020"),
            (false, "tcp://127.0.0.1:9020", "tls://127.0.0.1:9020"),
            (false, "tcp://127.0.0.1:9020", "tcp://127.0.0.1:9020?protocol=http"),
            (false, "unix:///run/other.sock", "unix:///run/logspool.sock"),
        ] {
            let (client, service) = (address.parse().unwrap(), listener.parse().unwrap());
            assert_eq!(expected, is_served_by(&client, &service), "{address} to {listener}");
        }
    }
}
