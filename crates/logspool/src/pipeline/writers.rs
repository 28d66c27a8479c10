//! Writer threads: one for each sink that has records. One whose sink was closed waits for the next, see `idle_writer.rs`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use logspool_sys::threads::spawn;

use super::recovery::recover_target;
use super::settings::queue_folder;
use super::state::Pipeline;
use crate::writer::Outlet;

/// How long a thread without a sink waits for one.
///
/// Chosen: programs that open and close files all the time do so more often than this. Half would do, too; double keeps
/// a thread for longer that most programs never need again.
const IDLE: Duration = Duration::from_millis(500);

impl Pipeline {
    /// Has a thread write what an outlet holds. The outlet was marked as one whose thread runs.
    pub(crate) fn start_writer(&self, outlet: Arc<Outlet>) {
        let Err(outlet) = self.idle_writer.give(outlet) else { return };
        let (spare, idle) = (outlet.clone(), self.idle_writer.clone());
        if !spawn("logspool-write", move || {
            let mut next = Some(outlet);
            while let Some(outlet) = next {
                write(&outlet);
                drop(outlet);
                next = idle.wait(IDLE);
            }
        }) {
            // Without a thread the records stay queued, on tmpfs, and are counted as such; the next record or flush
            // tries again.
            spare.has_no_thread();
        }
    }
}

/// The work of a thread for one outlet.
fn write(outlet: &Outlet) {
    let recover = || {
        if let Some(path) = &outlet.definition.lasting
            && outlet.begins()
        {
            recover_target(&queue_folder(), Path::new(path));
        }
    };
    // What a dead process left for this file comes before this process's first line in it; for a service it waits until
    // that is known to be there.
    if !outlet.confirms() {
        recover();
    }
    outlet.run(recover);
}
