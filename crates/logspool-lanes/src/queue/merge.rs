//! The order of a batch: one pure function of (stamp, lane incarnation, place in the list of lanes).
//!
//! The collector orders the records by this function when it makes a batch. The recoverer uses the same function to
//! make the batch again from a manifest, so both render the same bytes. Lanes without a record in a batch do not affect
//! its order, so a manifest need not name them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::reader::{LaneReader, PeekedRecord};

/// One lane's part of a batch.
#[derive(Debug)]
pub struct LaneShare<'a> {
    /// The records.
    pub reader: LaneReader<'a>,
    /// Index of the lane.
    pub lane: usize,
    /// Breaks ties between equal stamps.
    pub incarnation: u32,
    /// Position at which the part begins.
    pub from: u64,
}

/// Passes the records with a stamp up to `cut` to `take` in order, each with the index of its lane, until `take`
/// breaks.
#[inline]
pub fn in_order<'a>(
    shares: &mut [LaneShare<'a>],
    cut: u64,
    mut take: impl FnMut(usize, PeekedRecord<'a>) -> ControlFlow<()>,
) {
    let mut order = BinaryHeap::with_capacity(shares.len());
    let enqueue = |order: &mut BinaryHeap<_>, index: usize, share: &mut LaneShare<'a>| {
        if let Some(peeked) = share.reader.peek()
            && peeked.head.ticks <= cut
        {
            order.push(Reverse((peeked.head.ticks, share.incarnation, index)));
        }
    };
    for (index, share) in shares.iter_mut().enumerate() {
        enqueue(&mut order, index, share);
    }
    while let Some(Reverse((_, _, index))) = order.pop() {
        let share = &mut shares[index];
        // The last stamp at which a record of this lane comes before the next one of the other lanes.
        let last = match order.peek() {
            None => cut,
            Some(Reverse((ticks, incarnation, _))) if share.incarnation <= *incarnation => cut.min(*ticks),
            // This lane's record was the earliest, so the other one has a later stamp.
            Some(Reverse((ticks, _, _))) => cut.min(ticks.saturating_sub(1)),
        };
        // Takes a run: all records of this lane until another lane has an earlier one.
        while let Some(peeked) = share.reader.peek() {
            if peeked.head.ticks > last {
                break;
            }
            let flow = take(share.lane, peeked);
            share.reader.move_past(peeked.head);
            if flow.is_break() {
                return;
            }
        }
        enqueue(&mut order, index, share);
    }
}
