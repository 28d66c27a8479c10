//! Loom models of the pending-sync table and of the places of sidecars. Each model fails if the memory ordering that it
//! checks is weakened.

use loom::sync::Arc;
use loom::thread;

use logspool_lanes::lane::cursor::announce_sleep;
use logspool_sys::published::Published;
use logspool_sys::sync::{AtomicBool, AtomicU32, Ordering};

use crate::durable::{BatchShare, PendingSync, SyncOutcome, WaitRule};
use crate::sidecar::handler_place::{HandlerPlace, NamedSidecar};

/// Runs a model with at most three preemptions, and checks that some interleaving reached the state that the model is
/// about.
fn model_that_reaches(model: impl Fn(&std::sync::atomic::AtomicBool) + Sync + Send + 'static) {
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = reached.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || model(&seen));
    assert!(reached.load(std::sync::atomic::Ordering::Relaxed), "no interleaving reached the state of interest");
}

fn reach(reached: &std::sync::atomic::AtomicBool) {
    reached.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// The share of a batch that contains one record. The record ends at position 8 of lane 0.
fn one_record() -> impl Iterator<Item = BatchShare> {
    std::iter::once(BatchShare { lane: 0, from: 0, to: 8, records: 1, sinks: 1 })
}

/// The collector enters a batch with the record, and its only sink syncs it.
fn make_durable(pending_sync: &PendingSync) {
    pending_sync.add_batch(1, one_record());
    pending_sync.settle(0, std::iter::once(1), SyncOutcome::Durable);
}

#[test]
fn a_call_returns_when_its_record_is_durable_and_never_misses_the_end() {
    model_that_reaches(|reached| {
        let pending_sync = Arc::new((PendingSync::new(WaitRule::Every, Vec::new()), AtomicBool::new(false)));
        let native = {
            let pending_sync = pending_sync.clone();
            thread::spawn(move || {
                pending_sync.0.add_batch(1, one_record());
                pending_sync.1.store(true, Ordering::Relaxed);
                pending_sync.0.settle(0, std::iter::once(1), SyncOutcome::Durable);
            })
        };
        pending_sync.0.begin();
        assert_eq!(Some(true), pending_sync.0.wait_until(0, 8, 20, None, || {}));
        assert!(pending_sync.1.load(Ordering::Relaxed), "it returned before its record was written");
        assert!(!pending_sync.0.has_waiters());
        native.join().unwrap();
        reach(reached);
    });
}

#[test]
fn a_checkpoint_never_counts_too_few_records() {
    model_that_reaches(|reached| {
        let pending_sync = Arc::new((PendingSync::new(WaitRule::Checkpoint(1), Vec::new()), AtomicBool::new(false)));
        let caller = {
            let pending_sync = pending_sync.clone();
            thread::spawn(move || {
                pending_sync.0.begin();
                // Stands in for the ring: in the real program, the ring makes the push visible to the native threads.
                pending_sync.1.publish(true);
            })
        };
        let native = {
            let pending_sync = pending_sync.clone();
            thread::spawn(move || {
                if pending_sync.1.observe() {
                    make_durable(&pending_sync.0);
                }
            })
        };
        // The record of this thread is never settled, so this thread has to wait.
        pending_sync.0.begin();
        assert!(pending_sync.0.must_wait(20), "records that are not durable were counted as fewer than there are");
        caller.join().unwrap();
        native.join().unwrap();
        reach(reached);
    });
}

#[test]
fn a_counted_call_waits() {
    model_that_reaches(|reached| {
        let pending_sync = Arc::new(PendingSync::new(WaitRule::Every, Vec::new()));
        let caller = {
            let pending_sync = pending_sync.clone();
            thread::spawn(move || pending_sync.wait_until(0, 8, 20, None, || {}))
        };
        if pending_sync.calls() == 1 {
            assert!(pending_sync.has_waiters(), "a writer would sleep, although a call waits for its sync");
            reach(reached);
        }
        make_durable(&pending_sync);
        assert_eq!(Some(true), caller.join().unwrap());
    });
}

#[test]
fn a_call_wakes_the_collector_or_is_seen_by_it() {
    model_that_reaches(|reached| {
        let shared =
            Arc::new((PendingSync::new(WaitRule::Every, Vec::new()), AtomicU32::new(0), AtomicBool::new(false)));
        let caller = {
            let shared = shared.clone();
            thread::spawn(move || {
                let look_after = || {
                    if shared.1.load(Ordering::Relaxed) == 1 {
                        shared.2.store(true, Ordering::Relaxed);
                    }
                };
                shared.0.wait_until(0, 8, 20, None, look_after)
            })
        };
        announce_sleep(&shared.1);
        let sleeps = shared.0.calls() == 0;
        make_durable(&shared.0);
        caller.join().unwrap();
        let woken = shared.2.load(Ordering::Relaxed);
        assert!(!sleeps || woken, "the collector sleeps, and the call did not wake it");
        if sleeps {
            reach(reached);
        }
    });
}

#[test]
fn a_descriptor_is_visible_together_with_its_name() {
    model_that_reaches(|reached| {
        let place = Arc::new(HandlerPlace::free());
        let named =
            |number: i32| NamedSidecar { descriptor: number, folder: number + 1, device: 3, inode: number as u64 };
        assert!(place.is_free(1));
        let handler = {
            let place = place.clone();
            thread::spawn(move || place.named(1))
        };
        place.take(1, named(5));
        assert!(!place.is_free(1) && place.is_free(2), "a forked child uses the places of its parent");
        assert_eq!(None, place.named(2), "a forked child removes no sidecar of its parent");
        if let Some(found) = handler.join().unwrap() {
            assert_eq!(named(5), found);
            reach(reached);
        }
        place.free_place();
        assert!(place.is_free(1) && place.named(1).is_none());
    });
}
