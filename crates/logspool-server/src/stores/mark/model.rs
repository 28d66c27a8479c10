//! Tries every order in which copies of chunks and the end of their stream can reach a store. Each record has to be
//! stored once.
//!
//! The model also runs with wrong rules, to show that it finds what they lose and double.

use std::collections::BTreeMap;

use super::{Gaps, StreamMark, Verdict, judge};
use crate::delivery::Chunk;

/// Rules of a store: changes the mark of the stream, and returns the numbers that are stored.
type Rules = fn(&mut Option<StreamMark>, &Chunk) -> Vec<u64>;

fn numbers(new: &[super::NumberRange]) -> Vec<u64> {
    new.iter().flat_map(|range| range.first..=range.last).collect()
}

/// The rules of the stores.
fn rules(mark: &mut Option<StreamMark>, chunk: &Chunk) -> Vec<u64> {
    match judge(mark.as_ref(), chunk) {
        Verdict::Accept { new, mark: after, .. } => {
            *mark = Some(after);
            numbers(&new)
        }
        _ => Vec::new(),
    }
}

/// Wrong: a mark without gaps. A late chunk counts as stored.
fn without_gaps(mark: &mut Option<StreamMark>, chunk: &Chunk) -> Vec<u64> {
    let stored = rules(mark, chunk);
    mark.iter_mut().for_each(|mark| mark.gaps = Gaps::default());
    stored
}

/// Wrong: an end deletes the mark. A late copy counts as new.
fn ends_deleted(mark: &mut Option<StreamMark>, chunk: &Chunk) -> Vec<u64> {
    let stored = rules(mark, chunk);
    mark.take_if(|mark| mark.ended);
    stored
}

/// Wrong in both ways. Versions before 1.0 had these rules.
fn without_gaps_and_ends_deleted(mark: &mut Option<StreamMark>, chunk: &Chunk) -> Vec<u64> {
    // An end of an unknown stream changed nothing.
    if mark.is_none() && chunk.last < chunk.first {
        return Vec::new();
    }
    let stored = without_gaps(mark, chunk);
    mark.take_if(|mark| mark.ended);
    stored
}

fn chunk(first: u64, last: u64) -> Chunk {
    Chunk { stream: "s".to_owned(), epoch: 1, first, last, end: false }
}

/// Every order of the events; equal events are not told apart.
fn orders(counts: &mut BTreeMap<usize, usize>, order: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
    if counts.values().all(|left| *left == 0) {
        return each(order);
    }
    for event in counts.keys().copied().collect::<Vec<_>>() {
        if counts[&event] == 0 {
            continue;
        }
        counts.entry(event).and_modify(|left| *left -= 1);
        order.push(event);
        orders(counts, order, each);
        order.pop();
        counts.entry(event).and_modify(|left| *left += 1);
    }
}

/// Number of orders, of those that lose a record, and of those that store one twice.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    orders: usize,
    losing: usize,
    doubling: usize,
}

/// Tries all orders of `copies` copies of each chunk, without an end and with one. A client ends its stream after each
/// record was acknowledged, so the end follows a copy of each.
fn tally(rules: Rules, chunks: &[Chunk], copies: usize) -> Tally {
    let last = chunks.iter().map(|chunk| chunk.last).max().unwrap();
    let end = Chunk { end: true, ..chunk(last + 1, last) };
    let events: Vec<&Chunk> = chunks.iter().chain([&end]).collect();
    let mut tally = Tally::default();
    for ends in [0, 1] {
        let mut counts: BTreeMap<_, _> = (0..chunks.len()).map(|event| (event, copies)).collect();
        counts.insert(chunks.len(), ends);
        orders(&mut counts, &mut Vec::new(), &mut |order| {
            let before_end = order.iter().position(|event| *event == chunks.len()).unwrap_or(order.len());
            let is_acked = |number: &u64| {
                order[..before_end].iter().any(|event| (events[*event].first..=events[*event].last).contains(number))
            };
            if !(1..=last).all(|number| is_acked(&number)) {
                return;
            }
            let (mut mark, mut stored) = (None, vec![0; last as usize]);
            for event in order {
                rules(&mut mark, events[*event]).into_iter().for_each(|number| stored[number as usize - 1] += 1);
            }
            tally.orders += 1;
            tally.losing += usize::from(stored.contains(&0));
            tally.doubling += usize::from(stored.iter().any(|times| *times > 1));
        });
    }
    tally
}

#[test]
fn each_record_is_stored_once_in_every_order_of_copies_and_an_end() {
    let three = [chunk(1, 100), chunk(101, 200), chunk(201, 300)];
    // A recovery sends chunks that overlap those of the dead program.
    let overlapping = [chunk(1, 2), chunk(1, 5), chunk(4, 7), chunk(7, 8)];

    assert_eq!(Tally { orders: 378, losing: 0, doubling: 0 }, tally(rules, &three, 2));
    let found = tally(rules, &overlapping, 2);
    assert_eq!((0, 0), (found.losing, found.doubling), "{found:?}");
    assert!(found.orders > 3_000, "{found:?}");
}

#[test]
fn the_model_finds_what_wrong_rules_lose_and_double() {
    let three = [chunk(1, 100), chunk(101, 200), chunk(201, 300)];

    assert_eq!(Tally { orders: 378, losing: 264, doubling: 140 }, tally(without_gaps_and_ends_deleted, &three, 2));
    assert_eq!(Tally { orders: 378, losing: 315, doubling: 0 }, tally(without_gaps, &three, 2));
    let deleted = tally(ends_deleted, &three, 2);
    assert!(deleted.doubling > 0, "{deleted:?}");
}

/// After every event, each record up to the last one is either stored or in an open gap, and never both.
#[test]
fn a_record_is_stored_or_in_a_gap_after_every_event() {
    let end = Chunk { end: true, ..chunk(9, 8) };
    let events = [chunk(1, 2), chunk(3, 3), chunk(3, 6), chunk(5, 8), end];
    let mut counts: BTreeMap<_, _> = (0..events.len()).map(|event| (event, 1 + event % 2)).collect();
    let mut tried = 0;
    orders(&mut counts, &mut Vec::new(), &mut |order| {
        let (mut mark, mut stored) = (None, 0);
        for event in order {
            stored += rules(&mut mark, &events[*event]).len() as u64;
            let mark = mark.as_ref().unwrap();
            assert_eq!(mark.last, stored + mark.gaps.records(), "{order:?} {mark:?}");
        }
        tried += 1;
    });

    assert_eq!(1_260, tried);
}
