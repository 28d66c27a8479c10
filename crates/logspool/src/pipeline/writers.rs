//! Writer threads: one for each sink that has records. A thread whose sink was closed waits for another sink, see
//! `idle_writer.rs`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use logspool_sys::threads::spawn;

use super::recovery::recover_target;
use super::settings::{options, queue_folder};
use super::state::Pipeline;
use crate::collector::LONGEST_PAUSE;
use crate::writer::Outlet;

/// How long a thread without a sink waits for another sink.
///
/// Chosen: programs that constantly open and close files do so more often than this. Halving it would also work.
/// Doubling it would only keep a thread longer that most programs never need again.
const IDLE: Duration = Duration::from_millis(500);

impl Pipeline {
    /// Starts a thread that writes the records of an outlet. The outlet must be marked as running.
    pub(crate) fn start_writer(&self, outlet: Arc<Outlet>) {
        let Err(outlet) = self.idle_writer.assign(outlet) else { return };
        let (spare, idle) = (outlet.clone(), self.idle_writer.clone());
        if !spawn("logspool-write", move || {
            let mut next = Some(outlet);
            while let Some(outlet) = next {
                write(&outlet);
                drop(outlet);
                next = idle.wait(IDLE);
            }
        }) {
            // Without a thread the records stay queued on tmpfs, and are counted as queued. The next record or flush
            // tries again.
            spare.note_failed_start();
        }
    }
}

/// Body of a writer thread for one outlet.
fn write(outlet: &Outlet) {
    let recover = || {
        if let Some(path) = &outlet.definition.lasting
            && outlet.begin_once()
        {
            recover_target(&queue_folder(), Path::new(path));
        }
    };
    // The records of a dead process come before this process's first line in the file. If the sink is a service,
    // recovery waits until the service is known to be reachable.
    if !outlet.confirms() {
        recover();
    }
    // The collector may have kept the records for its longest pause.
    outlet.run(recover, || options().flush_interval.saturating_sub(LONGEST_PAUSE));
}
