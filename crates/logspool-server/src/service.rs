//! A running service. This module starts and stops the parts of the service in the right order.
//!
//! At the end the listeners stop first. Then the service reads the data that senders have sent, stores and acknowledges
//! it, and closes the stores. So no acknowledged record is lost, and all data that was read is stored. Each step has
//! its own part of `limits.shutdown_seconds`. So a sender that continues to send does not use up the time for storing
//! waiting records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::address::{Endpoint, ListenAddress};
use crate::adopt::Adoption;
use crate::config::Config;
use crate::connection::admission::Admission;
use crate::connection::key::ForwardKey;
use crate::connection::shared::SharedState;
use crate::descriptors;
use crate::http;
use crate::intake::{Intake, Writers};
use crate::known_protocols;
use crate::metrics::Metrics;
use crate::opening;
use crate::sources::datagrams::DatagramReader;
use crate::sources::inherited::InheritedSockets;
use crate::sources::listeners::Listener;
use crate::sources::tls::Identity;

/// `limits.shutdown_seconds` divided by this number is the time for reading data that senders have sent.
///
/// Chosen: with the default of ten seconds, reading has two seconds. The buffers of the kernel are read in a fraction
/// of this time.
const READ_DIVISOR: u32 = 5;

/// `limits.shutdown_seconds` divided by this number is the time that is kept for the stores at the end, even if
/// connections stay open. It is also the time for closing the stores.
const CLOSE_DIVISOR: u32 = 10;

/// When no data has waited for a store for this time, all data counts as stored and acknowledged.
const SETTLED_TIME: Duration = Duration::from_millis(100);

/// Interval between checks whether data waits for a store.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A running service.
#[derive(Debug)]
pub struct Service {
    /// The addresses of the listeners, with the actual ports if port 0 was configured. HTTP is last.
    pub addresses: Vec<ListenAddress>,
    /// The configuration with which the service started.
    config: Config,
    intake: Arc<Intake>,
    writers: Writers,
    adoption: Option<Adoption>,
    identity: Option<Identity>,
    access: http::AccessControl,
    stop: watch::Sender<Option<tokio::time::Instant>>,
    tasks: JoinSet<()>,
}

impl Service {
    /// Opens stores and listeners. The service accepts records when this returns. A listener takes the inherited socket
    /// that has its address.
    ///
    /// # Errors
    ///
    /// A store or listener cannot be opened, or an inherited socket has no listener. The text has the reason, and says how to fix it if possible.
    pub async fn start(config: Config, mut inherited: InheritedSockets) -> Result<Self, String> {
        config.check()?;
        let admission = Admission::new(descriptors::divide(&config)?, config.limits.connections_per_peer);
        let identity = config.tls.as_ref().map(Identity::read).transpose()?;
        let shared_key = config.forward.as_ref().map(ForwardKey::read).transpose()?;
        let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
        for listen in &config.listen {
            match &listen.endpoint {
                Endpoint::Udp(_) | Endpoint::UnixDatagram(_) => {
                    sockets.push(DatagramReader::open(listen, &mut inherited)?)
                }
                _ => listeners.push(Listener::open(listen, identity.as_ref(), &mut inherited)?),
            }
        }
        listeners.extend(Listener::open_http(config.http, &mut inherited)?);
        inherited.expect_none_left()?;

        // Open the stores last: a service that cannot listen leaves no files on disk.
        let opened = opening::open(&config)?;
        let metrics = Arc::new(Metrics::default());
        known_protocols::ALL.iter().for_each(|protocol| drop(metrics.frames(protocol.name)));
        let (intake, mut writers) = Intake::start(opened.stores, config.limits.waiting_bytes, metrics)
            .map_err(|error| format!("cannot start a thread for a store: {error}"))?;
        writers.wait_for_first_checks().await;
        let (stop, stopped) = watch::channel(None);
        let access = http::AccessControl::new(&config.access);
        let http = http::router(intake.clone(), opened.reader, config.limits.clone(), access.clone(), stopped.clone());
        let shared = Arc::new(SharedState {
            intake: intake.clone(),
            limits: config.limits.clone(),
            http,
            shared_key,
            zones: config.zones.clone(),
            stop: stopped,
        });

        let (mut tasks, mut addresses) = (JoinSet::new(), Vec::new());
        for socket in sockets {
            if let Endpoint::Udp(at) = socket.address.endpoint {
                shared.intake.metrics.watch_datagrams(at.port());
            }
            addresses.push(socket.address.clone());
            let shared = shared.clone();
            tasks.spawn(async move { socket.serve(shared).await });
        }
        for listener in listeners {
            addresses.push(listener.address.clone());
            tasks.spawn(listener.serve(shared.clone(), admission.clone()));
        }
        // Start adoption last: it needs the addresses of the listeners to recognise records for this service.
        let adoption = match &config.adopt[..] {
            [] => None,
            folders => Some(Adoption::start(folders, &addresses, config.limits.frame_bytes, &intake)?),
        };
        Ok(Self { addresses, config, intake, writers, adoption, identity, access, stop, tasks })
    }

    /// Applies the values that can change at run time: certificates, tokens and names. Returns true if any other value
    /// differs from the running configuration, so that a restart is needed.
    ///
    /// # Errors
    ///
    /// The new configuration is invalid, or its certificates and tokens do not fit the running listeners. In this case
    /// nothing changes.
    pub fn reload(&self, config: &Config) -> Result<bool, String> {
        config.check()?;
        let Config { access, tls, .. } = config.clone();
        let running = Config { access, tls, ..self.config.clone() }.check();
        running.map_err(|why| format!("it does not fit the running listeners: {why}; or restart the service"))?;
        if let (Some(identity), Some(tls)) = (&self.identity, &config.tls) {
            identity.read_again(tls)?;
        }
        self.access.change(&config.access);
        Ok(self.config.needs_restart_for(config))
    }

    /// The stores that fail now, each with the reason.
    pub fn failing_stores(&self) -> Vec<String> {
        let troubles = self.intake.metrics.failing_stores().into_iter();
        troubles.map(|(store, trouble)| format!("store {store}: {}", trouble.why)).collect()
    }

    /// Adds the log messages of the service that could not be written to the metrics. `unsaid` returns their number.
    pub fn count_dropped_messages(&self, unsaid: impl Fn() -> u64 + Send + Sync + 'static) {
        self.intake.metrics.watch_dropped_messages(unsaid);
    }

    /// Stops the service.
    ///
    /// # Errors
    ///
    /// Records could not be stored in time. Senders that use acks got no ack for these records, and send them again.
    pub async fn stop(mut self) -> Result<(), String> {
        let given = Duration::from_secs(self.config.limits.shutdown_seconds);
        let began = Instant::now();
        let (reading, until) = (began + given / READ_DIVISOR, began + given);
        self.stop.send_replace(Some(reading.into()));
        if let Some(adoption) = &mut self.adoption {
            adoption.stop();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // When all data is stored, do not wait for connections that are still open. They have sent half a request, or
        // do not read their answer.
        let done = async {
            tokio::select! { () = ended => {}, () = wait_until_settled(&self.intake, reading) => {} }
        };
        let in_time = tokio::time::timeout_at((until - given / CLOSE_DIVISOR).into(), done).await.is_ok();
        let settled = !self.intake.is_waiting();
        self.tasks.abort_all();
        self.intake.close();
        let writers = self.writers;
        let adoption = self.adoption;
        // If all data is stored, the stores only have to be closed. Closing may wait for an index on a busy machine.
        let closing = if settled { given / CLOSE_DIVISOR } else { until.saturating_duration_since(Instant::now()) };
        let stored = tokio::task::spawn_blocking(move || {
            let stored = writers.finish(closing.max(SETTLED_TIME));
            if let Some(adoption) = adoption {
                adoption.finish(until);
            }
            stored
        });
        let stored = stored.await.unwrap_or(false);
        match (self.intake.unacked(), self.intake.undecoded()) {
            (0, 0) if settled || (in_time && stored) => Ok(()),
            (0, 0) => Err(
                "some received records could not be stored in time; their senders got no ack and will send them again"
                    .to_owned(),
            ),
            (lost, undecoded) => {
                let undecoded = match undecoded {
                    0 => String::new(),
                    bytes => format!(", and {bytes} bytes that were received and not decoded"),
                };
                Err(format!(
                    "{lost} records are lost{undecoded}: they were not stored in time (limits.shutdown_seconds), \
                     and their senders do not wait for an answer"
                ))
            }
        }
    }
}

/// Waits until `reading`, when reading ends, and then until no received data waits for a store.
async fn wait_until_settled(intake: &Intake, reading: Instant) {
    tokio::time::sleep_until(reading.into()).await;
    let mut since = Instant::now();
    while since.elapsed() < SETTLED_TIME {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if intake.is_waiting() {
            since = Instant::now();
        }
    }
}
