//! Tells the service manager what the service does: systemd with `Type=notify`. Without one, nothing is told.

use std::future::pending;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::warnings;

/// Interval between checks whether the status has changed. The watchdog of the service manager may need a shorter one.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// What the service manager has been told.
#[derive(Debug)]
pub(super) struct ServiceManager {
    has_watchdog: bool,
    /// `None`: there is no service manager.
    ticks: Option<Interval>,
    status: String,
}

impl ServiceManager {
    /// Finds the service manager in the environment (NOTIFY_SOCKET, WATCHDOG_USEC).
    pub(super) fn from_environment() -> Self {
        let watchdog = sd_notify::watchdog_enabled();
        let ticks = std::env::var_os("NOTIFY_SOCKET").map(|_| {
            // Half the time of the watchdog, as its documentation advises (sd_watchdog_enabled(3)).
            let every = watchdog.map_or(STATUS_INTERVAL, |limit| (limit / 2).min(STATUS_INTERVAL));
            let mut ticks = interval(every.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self { has_watchdog: watchdog.is_some(), ticks, status: String::new() }
    }

    /// Waits until it is time for [`Self::alive`].
    pub(super) async fn tick(&mut self) {
        match &mut self.ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => pending().await,
        }
    }

    /// The service accepts records.
    pub(super) fn ready(&mut self, status: String) {
        self.say(&[NotifyState::Ready, NotifyState::Status(&one_line(&status))]);
        self.status = status;
    }

    /// The service works. Tells the status if it has changed.
    pub(super) fn alive(&mut self, status: String) {
        if self.has_watchdog {
            self.say(&[NotifyState::Watchdog]);
        }
        if status != self.status {
            self.say(&[NotifyState::Status(&one_line(&status))]);
            self.status = status;
        }
    }

    /// The service reads its configuration again. [`Self::ready`] ends that.
    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.say(&[NotifyState::Reloading, now]),
            Err(_) => self.say(&[NotifyState::Reloading]),
        }
    }

    /// The service stores the records that it has received, and ends.
    pub(super) fn stopping(&self) {
        self.say(&[NotifyState::Stopping, NotifyState::Status("storing received records")]);
    }

    fn say(&self, states: &[NotifyState<'_>]) {
        if self.ticks.is_some()
            && let Err(error) = sd_notify::notify(states)
        {
            warnings::warn("service_manager", None, || {
                format!("the service manager cannot be told (NOTIFY_SOCKET): {error}")
            });
        }
    }
}

/// Each line of a message to the service manager is a state, so a status has only one.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
