//! States of handlers by address. The callback of a weak reference removes the state when its handler is freed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::state::HandlerState;
use crate::interpreter::failure::Failure;
use crate::interpreter::object::WeakReference;
use crate::plans::callbacks::weak_reference;

pub(super) struct KnownHandler {
    pub(super) state: Arc<HandlerState>,
    pub(super) reference: WeakReference,
}

/// Hashes the address of an object by one multiplication. Speed matters because each call of `handle` looks up its
/// handler twice. Collisions cannot be provoked, because no input of the program chooses an address.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    #[inline]
    fn write_usize(&mut self, address: usize) {
        /// 2^64 divided by the golden ratio, an odd number (Knuth, TAOCP volume 3, section 6.4).
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        let product = (self.0 ^ address as u64).wrapping_mul(GOLDEN_RATIO);
        // The hash table uses the lowest bits. They are 0 in every address and also in the product, so the upper half
        // is mixed into them.
        self.0 = product ^ (product >> 32);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) struct HandlerTable {
    pub(super) states: HashMap<usize, KnownHandler, BuildHasherDefault<AddressHasher>>,
    pub(super) by_reference: HashMap<usize, usize>,
    /// Sinks of freed handlers for whose queued records no thread has waited yet.
    pub(super) orphans: Vec<(u64, u32)>,
}

static TABLE: Mutex<Option<HandlerTable>> = Mutex::new(None);

pub(super) fn with_table<T>(act: impl FnOnce(&mut HandlerTable) -> T) -> T {
    let mut table = TABLE.lock().expect("no panic happens while it is held");
    let empty = || HandlerTable { states: HashMap::default(), by_reference: HashMap::new(), orphans: Vec::new() };
    act(table.get_or_insert_with(empty))
}

/// The known state of a handler. Makes no new state.
pub fn known(handler: &Bound<'_, PyAny>) -> Option<Arc<HandlerState>> {
    with_table(|table| table.states.get(&(handler.as_ptr() as usize)).map(|entry| entry.state.clone()))
}

/// Puts a state into the table.
pub(super) fn enter(state: HandlerState, handler: &Bound<'_, PyAny>) -> Result<Arc<HandlerState>, Failure> {
    let address = handler.as_ptr() as usize;
    let state = Arc::new(state);
    let reference = weak_reference(handler)?;
    let old = with_table(|table| {
        table.by_reference.insert(reference.address(), address);
        let old = table.states.insert(address, KnownHandler { state: state.clone(), reference });
        if let Some(old) = &old {
            table.by_reference.remove(&old.reference.address());
        }
        old
    });
    drop(old);
    Ok(state)
}

/// Removes the state of a handler from the table, and returns it.
pub(super) fn take(handler: &Bound<'_, PyAny>) -> Option<Arc<HandlerState>> {
    let entry = with_table(|table| {
        let entry = table.states.remove(&(handler.as_ptr() as usize))?;
        table.by_reference.remove(&entry.reference.address());
        Some(entry)
    })?;
    Some(entry.state.clone())
}
