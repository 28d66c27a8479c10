//! A running service: its parts in the order in which they start, and in which they end.
//!
//! At the end the listeners stop first, then what senders have sent is read, then it is stored and acknowledged, then
//! the stores are closed: nothing that was acknowledged is lost, and what was read is stored. Each of these has its part
//! of limits.shutdown_seconds, so that a sender that goes on takes nothing from those whose records wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::address::{Listen, Place};
use crate::adopt::Adoption;
use crate::config::Config;
use crate::descriptors;
use crate::http;
use crate::intake::{Intake, Writers};
use crate::metrics::Metrics;
use crate::sources::admission::Admission;
use crate::sources::datagrams::Datagrams;
use crate::sources::key::Key;
use crate::sources::listeners::Listener;
use crate::sources::shared::Shared;
use crate::sources::tls::Identity;
use crate::stores;

/// What senders have sent is read for this part of limits.shutdown_seconds.
///
/// Chosen: with the usual ten seconds, several times what it takes to read the buffers of the kernel.
const READING: u32 = 5;

/// The part of it that is left to the stores at the end, whatever the connections do, and that their closing may take.
const CLOSING: u32 = 10;

/// How long nothing may wait for a store until all is taken for stored and answered.
const QUIET: Duration = Duration::from_millis(100);

/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A service that runs.
#[derive(Debug)]
pub struct Service {
    /// Where it listens: the ports that were given where 0 was asked, HTTP last.
    pub addresses: Vec<Listen>,
    /// As it was started with.
    config: Config,
    intake: Arc<Intake>,
    writers: Writers,
    adoption: Option<Adoption>,
    identity: Option<Identity>,
    access: http::Access,
    stop: watch::Sender<Option<tokio::time::Instant>>,
    tasks: JoinSet<()>,
}

impl Service {
    /// Opens stores and listeners. It takes records when this returns.
    ///
    /// # Errors
    ///
    /// What cannot be opened, why, and the mend where there is one.
    pub async fn start(config: Config) -> Result<Self, String> {
        config.check()?;
        let admission = Admission::new(descriptors::share_out(&config)?, config.limits.connections_per_peer);
        let identity = config.tls.as_ref().map(Identity::read).transpose()?;
        let shared_key = config.forward.as_ref().map(Key::read).transpose()?;
        let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
        for listen in &config.listen {
            match listen.at {
                Place::Udp(at) => sockets.push(Datagrams::open(listen, at)?),
                _ => listeners.push(Listener::open(listen, identity.as_ref()).await?),
            }
        }
        listeners.extend(Listener::open_http(config.http).await?);

        // Stores come last: what cannot listen leaves no trace of itself on disk.
        let opened = stores::open(&config)?;
        let metrics = Arc::new(Metrics::default());
        let (intake, mut writers) = Intake::start(opened.stores, config.limits.waiting_bytes, metrics)
            .map_err(|error| format!("cannot start a thread for a store: {error}"))?;
        writers.checked().await;
        let (stop, stopped) = watch::channel(None);
        let access = http::Access::new(&config.access);
        let http = http::router(intake.clone(), opened.answers, config.limits.clone(), access.clone(), stopped.clone());
        let shared =
            Arc::new(Shared { intake: intake.clone(), limits: config.limits.clone(), http, shared_key, stop: stopped });

        let (mut tasks, mut addresses) = (JoinSet::new(), Vec::new());
        for socket in sockets {
            if let Place::Udp(at) = socket.address.at {
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
        // Last: whoever is adopted may be told apart from those who connect by the addresses.
        let adoption = match &config.adopt[..] {
            [] => None,
            folders => Some(Adoption::start(folders, &addresses, config.limits.frame_bytes, &intake)?),
        };
        Ok(Self { addresses, config, intake, writers, adoption, identity, access, stop, tasks })
    }

    /// Takes over what can change while it runs: certificates, tokens and names. The rest of the configuration is
    /// compared with that of the start; returned is whether something in it waits for a new one.
    ///
    /// # Errors
    ///
    /// The new configuration cannot be used, or its certificates and tokens not for the listeners that run; all stays as
    /// it was.
    pub fn reload(&self, config: &Config) -> Result<bool, String> {
        config.check()?;
        let Config { access, tls, .. } = config.clone();
        let running = Config { access, tls, ..self.config.clone() }.check();
        running.map_err(|why| format!("it is not for the listeners that run: {why}; or start the service anew"))?;
        if let (Some(identity), Some(tls)) = (&self.identity, &config.tls) {
            identity.read_again(tls)?;
        }
        self.access.change(&config.access);
        Ok(self.config.needs_restart_for(config))
    }

    /// The stores that cannot be used now, with the reason and the mend of each.
    pub fn troubles(&self) -> Vec<String> {
        let troubles = self.intake.metrics.troubles().into_iter();
        troubles.map(|(store, trouble)| format!("store {store}: {}", trouble.why)).collect()
    }

    /// Counts messages about the service itself that could not be written.
    pub fn count_unsaid(&self, unsaid: impl Fn() -> u64 + Send + Sync + 'static) {
        self.intake.metrics.watch_messages(unsaid);
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// What could not be stored in time. Senders that wait for answers got none, and send it again.
    pub async fn stop(mut self) -> Result<(), String> {
        let given = Duration::from_secs(self.config.limits.shutdown_seconds);
        let began = Instant::now();
        let (reading, until) = (began + given / READING, began + given);
        self.stop.send_replace(Some(reading.into()));
        if let Some(adoption) = &mut self.adoption {
            adoption.stop();
        }
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Who is left when all is stored has nothing more to say: a request of which half came, an answer nobody reads.
        let done = async {
            tokio::select! { () = ended => {}, () = settled(&self.intake, reading) => {} }
        };
        let in_time = tokio::time::timeout_at((until - given / CLOSING).into(), done).await.is_ok();
        let settled = !self.intake.is_waiting();
        self.tasks.abort_all();
        self.intake.close();
        let writers = self.writers;
        let adoption = self.adoption;
        // Where all is stored only the closing is left, which may wait for an index on a busy machine.
        let closing = if settled { given / CLOSING } else { until.saturating_duration_since(Instant::now()) };
        let stored = tokio::task::spawn_blocking(move || {
            let stored = writers.finish(closing.max(QUIET));
            if let Some(adoption) = adoption {
                adoption.finish(until);
            }
            stored
        });
        let stored = stored.await.unwrap_or(false);
        match (self.intake.unheard(), self.intake.undecoded()) {
            (0, 0) if settled || (in_time && stored) => Ok(()),
            (0, 0) => {
                Err("some of what came could not be stored in time; its senders got no answer, and keep it".to_owned())
            }
            (lost, undecoded) => {
                let undecoded = match undecoded {
                    0 => String::new(),
                    bytes => format!(", and {bytes} bytes that were received and not decoded"),
                };
                Err(format!(
                    "{lost} records are lost{undecoded}: no store took them in time (limits.shutdown_seconds), \
                     and their senders do not wait for an answer"
                ))
            }
        }
    }
}

/// Waits until nothing more is read, and nothing of what was read waits for a store.
async fn settled(intake: &Intake, reading: Instant) {
    tokio::time::sleep_until(reading.into()).await;
    let mut since = Instant::now();
    while since.elapsed() < QUIET {
        tokio::time::sleep(LOOK).await;
        if intake.is_waiting() {
            since = Instant::now();
        }
    }
}
