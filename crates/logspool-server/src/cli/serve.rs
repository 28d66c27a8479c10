//! `logspool serve`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder};

use super::failure::CommandFailure;
use super::service_manager::ServiceManager;
use crate::address::{HttpAddress, ListenAddress};
use crate::config::Config;
use crate::service::Service;
use crate::sources::inherited::InheritedSockets;
use crate::stores::StoreAddress;

/// Maximum number of log messages of the service itself that are buffered for a slow terminal or pipe.
const MAX_BUFFERED_MESSAGES: usize = 1_000;

/// Collect records until SIGTERM or Ctrl-C.
///
/// Without options: TCP on 127.0.0.1:9020 for every stream protocol (stdlib SocketHandler, syslog, JSON lines, GELF,
/// Fluent Forward, HTTP), UDP on 127.0.0.1:9021, HTTP on 127.0.0.1:9080, and SQLite in ./logspool-data. SIGHUP reads
/// the configuration again. LOGSPOOL_LOG sets what the service says about itself (error, warn, info, debug).
#[derive(Debug, clap::Args)]
pub(super) struct ServeArguments {
    /// Configuration file (TOML); command-line options override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Addresses for senders: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH, tls://HOST:PORT. May be repeated.
    #[arg(long, value_name = "URL")]
    listen: Vec<ListenAddress>,
    /// Stores for records: sqlite:FOLDER, postgres://USER:PASSWORD@HOST:PORT/DATABASE. May be repeated; the first one
    /// answers queries.
    #[arg(long, value_name = "URL")]
    store: Vec<StoreAddress>,
    /// Also append a line for each record to this text file.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Group whose members may read the folders of SQLite stores and the text file. No other user may.
    #[arg(long, value_name = "GROUP")]
    store_group: Option<String>,
    /// Address for HTTP, HOST:PORT, or "off".
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// Deliver records of killed programs from this queue folder (/dev/shm/logspool-UID). May be repeated.
    #[arg(long, value_name = "DIR")]
    adopt: Vec<PathBuf>,
    /// Listen for other machines without TLS and tokens.
    #[arg(long)]
    insecure: bool,
}

impl ServeArguments {
    fn config(&self) -> Result<Config, CommandFailure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path).map_err(CommandFailure::Failed)?,
            None => Config::default(),
        };
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        if !self.store.is_empty() {
            config.store.clone_from(&self.store);
        }
        if let Some(http) = self.http {
            config.http = http;
        }
        if self.file.is_some() {
            config.file.clone_from(&self.file);
        }
        if self.store_group.is_some() {
            config.store_group.clone_from(&self.store_group);
        }
        if !self.adopt.is_empty() {
            config.adopt.clone_from(&self.adopt);
        }
        config.insecure |= self.insecure;
        Ok(config)
    }
}

pub(super) fn run(arguments: ServeArguments) -> Result<(), CommandFailure> {
    // This changes the environment, so it comes before the first thread.
    let inherited = InheritedSockets::from_environment().map_err(CommandFailure::Failed)?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOGSPOOL_LOG");
    // A terminal or pipe that nobody reads must not stop the service. Log messages that do not fit into the buffer are
    // dropped and counted.
    let (messages, _written) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(MAX_BUFFERED_MESSAGES)
        .thread_name("messages")
        .finish(io::stderr());
    let unsaid = messages.error_counter();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info")))
        .with_writer(messages)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
        .with_target(false)
        .init();
    let config = arguments.config()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(&arguments, config, inherited, unsaid));
    // Do not drop the runtime: this would wait for running queries, whose answers nobody needs any more.
    runtime.shutdown_background();
    done
}

async fn serve(
    arguments: &ServeArguments,
    config: Config,
    inherited: InheritedSockets,
    unsaid: ErrorCounter,
) -> Result<(), CommandFailure> {
    // Install the signal handlers before the first log message. A program that waits for this message may send a signal
    // at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;

    let kept: Vec<_> = config.store.iter().map(ToString::to_string).collect();
    let mut manager = ServiceManager::from_environment();
    let service = Service::start(config, inherited).await.map_err(CommandFailure::Failed)?;
    service.count_dropped_messages(move || unsaid.dropped_lines() as u64);
    for address in &service.addresses {
        tracing::info!("listening at {address}");
    }
    match &service.failing_stores()[..] {
        [] => tracing::info!("ready: records go to {}", kept.join(", ")),
        troubles => tracing::error!("not ready: {}; records wait, and the store is retried", troubles.join("; ")),
    }
    let status = || match &service.failing_stores()[..] {
        [] => format!("records go to {}", kept.join(", ")),
        troubles => format!("records wait: {}", troubles.join("; ")),
    };
    manager.ready(status());
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => {
                manager.reloading();
                reload(arguments, &service);
                manager.ready(status());
            }
            () = manager.tick() => manager.alive(status()),
        }
    }
    manager.stopping();
    tracing::info!("shutting down: storing received records");
    tokio::spawn(async move {
        // A second signal ends the service at once.
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        std::process::exit(1);
    });
    service.stop().await.map_err(|why| {
        tracing::error!("{why}");
        CommandFailure::Reported
    })
}

fn reload(arguments: &ServeArguments, service: &Service) {
    let config = arguments.config().map_err(|failure| match failure {
        CommandFailure::Failed(why) | CommandFailure::Usage(why) => why,
        CommandFailure::PipeClosed | CommandFailure::Reported => String::new(),
    });
    match config.and_then(|config| service.reload(&config)) {
        Ok(false) => tracing::info!("configuration reloaded"),
        Ok(true) => tracing::warn!(
            "configuration reloaded: certificates, tokens and host names are in effect; other changes need a restart"
        ),
        Err(why) => tracing::error!("configuration not reloaded: {why}"),
    }
}
