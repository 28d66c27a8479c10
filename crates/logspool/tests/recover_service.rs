//! Processes killed at a random moment while they send to a service: recovery continues their stream, and the service
//! has each record once.
//!
//! `LOGSPOOL_KILLS` sets the rounds of each kind, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;
use crate::service;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logspool::recover::{self, AdoptedRecords, Adopter, FileAction};
use logspool_lanes::segment::layout::{DROPS, LEVEL_CLASSES, SINKS_OFFSET, SinkHead};
use logspool_record::msgpack::Reader;
use orphan::exact::judge;
use orphan::{Dice, Scene, Task};
use service::{Answer, Service};

#[test]
fn child_process() {
    orphan::child_main();
}

fn rounds() -> u32 {
    std::env::var("LOGSPOOL_KILLS").map_or(20, |rounds| rounds.parse().unwrap())
}

/// The behaviour of the service while records come.
#[derive(Debug, Clone, Copy)]
enum Weather {
    /// It answers.
    Fair,
    /// It takes every chunk, and answers now and then.
    Slow,
    /// It takes every chunk, and cuts connections instead of answering.
    Cutting,
    /// It stops and starts again.
    Restarting,
    /// It stops for good.
    Gone,
}

/// Makes the service behave as `weather` until `is_over`.
fn blow(service: &mut Service, weather: Weather, is_over: &AtomicBool) {
    let pause = || std::thread::sleep(Duration::from_millis(3));
    if matches!(weather, Weather::Gone) {
        pause();
        service.stop();
    }
    while !is_over.load(Ordering::Relaxed) {
        match weather {
            Weather::Fair | Weather::Gone => {}
            Weather::Slow => {
                service.set(Answer::Hold);
                pause();
                service.release();
            }
            Weather::Cutting => {
                service.set(Answer::KeepAndCut);
                pause();
                service.set(Answer::Ack);
            }
            Weather::Restarting => {
                service.stop();
                pause();
                service.listen();
            }
        }
        pause();
    }
    if matches!(weather, Weather::Gone) {
        service.listen();
    }
    service.set(Answer::Ack);
}

/// Makes a child log in this weather and kills it. Returns the accepted records.
fn killed(task: Task, scene: &Scene, service: &mut Service, weather: Weather, dice: &mut Dice) -> HashMap<u32, u32> {
    let is_over = AtomicBool::new(false);
    let longest = if task == Task::LogToService { 100_000 } else { 400_000 };
    std::thread::scope(|threads| {
        let blowing = threads.spawn(|| blow(service, weather, &is_over));
        let witness = scene.spawn(task);
        witness.await_report();
        std::thread::sleep(Duration::from_micros(dice.below(longest)));
        let accepted = witness.kill();
        is_over.store(true, Ordering::Relaxed);
        blowing.join().unwrap();
        accepted
    })
}

fn text(service: &Service) -> String {
    service.messages().into_iter().map(|message| message + "\n").collect()
}

fn recovered(scene: &Scene, what: &str) -> u64 {
    let report = scene.recover();
    assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "{what}: {report:?}");
    report.records()
}

fn kill_and_recover(task: Task, weathers: &[Weather]) {
    let mut dice = Dice::new();
    for &weather in weathers {
        let (mut lines, mut delivered, mut told) = (0, 0, 0);
        for round in 0..rounds() {
            let scene = Scene::with_service(own_test!("child_process"));
            let mut service = Service::start(scene.target.to_str().unwrap());
            let accepted = killed(task, &scene, &mut service, weather, &mut dice);
            delivered += recovered(&scene, &format!("{weather:?}, round {round}"));
            let text = text(&service);
            lines += judge(task, &text, &accepted, &[]);
            told += text.matches("records dropped: ").count();
            assert_eq!(1, service.streams(), "{weather:?}: recovery goes on with the stream");
        }
        println!(
            "{task:?}, {weather:?}: {} kills, {lines} records, {delivered} of them sent by recovery, {told} told",
            rounds()
        );
    }
}

#[test]
fn a_service_has_every_accepted_record_of_a_killed_process_once() {
    let weathers = [Weather::Fair, Weather::Slow, Weather::Cutting, Weather::Restarting, Weather::Gone];
    kill_and_recover(Task::LogToService, &weathers);
}

/// When records are refused, logspool adds messages of its own, which have a stream number and are in no lane.
#[test]
fn messages_about_refused_records_change_no_record_number() {
    kill_and_recover(Task::LogToServiceTight, &[Weather::Slow, Weather::Cutting]);
}

#[test]
fn the_successor_of_a_killed_recoverer_sends_the_same_record_numbers() {
    let mut dice = Dice::new();
    let (mut lines, mut interrupted) = (0, 0);
    for round in 0..rounds() {
        let scene = Scene::with_service(own_test!("child_process"));
        let mut service = Service::start(scene.target.to_str().unwrap());
        let weather = if round % 2 == 0 { Weather::Gone } else { Weather::Slow };
        let accepted = killed(Task::LogToService, &scene, &mut service, weather, &mut dice);
        for _ in 0..3 {
            let before = service.arrivals().len();
            // The service stores what the recoverer sends; whether it acks is left to chance.
            service.set(if dice.below(2) == 0 { Answer::Ack } else { Answer::Hold });
            let recoverer = scene.spawn(Task::Recover);
            let has_left = || scene.names().is_empty();
            orphan::await_that("the recoverer sends", || service.arrivals().len() > before || has_left());
            std::thread::sleep(Duration::from_micros(dice.below(10_000)));
            recoverer.kill();
            interrupted += u32::from(!has_left());
        }
        service.set(Answer::Ack);
        recovered(&scene, &format!("round {round}"));
        lines += judge(Task::LogToService, &text(&service), &accepted, &[]);
        assert_eq!(1, service.streams());
    }
    println!("{} kills of recoverers, {interrupted} at work, {lines} records, none twice", 3 * rounds());
}

#[test]
fn a_message_whose_ack_was_lost_changes_no_record_number() {
    for round in 0..rounds() {
        let scene = Scene::with_service(own_test!("child_process"));
        let service = Service::start(scene.target.to_str().unwrap());
        let witness = scene.spawn(Task::LogToServiceTight);
        witness.await_report();
        orphan::await_that("the service has a message and did not say so", || {
            service.set(Answer::Hold);
            std::thread::sleep(Duration::from_millis(10));
            let has_come = text(&service).contains("records dropped: ");
            if !has_come {
                service.release();
            }
            has_come
        });
        let accepted = witness.kill();
        service.set(Answer::Ack);
        recovered(&scene, &format!("round {round}"));
        judge(Task::LogToServiceTight, &text(&service), &accepted, &[]);
    }
}

/// Takes the records that an adoption finds, and fails half of the time, before or after it has taken one.
struct Taker<'a> {
    dice: RefCell<&'a mut Dice>,
    /// Number of the next record, and the messages of the earlier ones, in order.
    taken: RefCell<(u64, Vec<Vec<u8>>)>,
}

impl Adopter for Taker<'_> {
    fn looks_at(&self, _: &str) -> bool {
        true
    }

    fn action(&self, _: &Path) -> FileAction {
        FileAction::Take
    }

    fn take(&self, given: &AdoptedRecords<'_>) -> io::Result<()> {
        let fate = self.dice.borrow_mut().below(20);
        if fate == 0 {
            return Err(io::Error::other("not now"));
        }
        let (next, records) = &mut *self.taken.borrow_mut();
        assert!(given.first <= *next, "{} follows {next}", given.first);
        for (number, (record, _)) in (given.first..).zip(given.records()) {
            if number == *next {
                records.push(record.to_vec());
                *next += 1;
            } else {
                assert!(records[number as usize - 1] == record, "record {number} came as another one");
            }
        }
        if fate == 1 { Err(io::Error::other("taken, and not known to be")) } else { Ok(()) }
    }
}

#[test]
fn adopted_records_keep_their_numbers_however_often_they_are_offered() {
    let mut dice = Dice::new();
    let mut offers = 0;
    for round in 0..rounds() {
        let scene = Scene::with_service(own_test!("child_process"));
        let witness = scene.spawn(Task::LogToService);
        witness.await_report();
        std::thread::sleep(Duration::from_micros(dice.below(50_000)));
        let accepted = witness.kill();
        let taker = Taker { dice: RefCell::new(&mut dice), taken: RefCell::new((1, Vec::new())) };
        while !scene.names().is_empty() {
            recover::adopt(scene.queue.path(), &taker).unwrap();
            offers += 1;
        }
        let (_, records) = taker.taken.into_inner();
        let text: String = records.iter().map(|entry| service::message(&mut Reader::new(entry)) + "\n").collect();
        judge(Task::LogToService, &text, &accepted, &[]);
        assert!(!records.is_empty(), "round {round}");
    }
    println!("{} kills, {offers} adoptions", rounds());
}

/// Records that the killed process had counted as dropped for its service, which is its first sink.
fn dropped(scene: &Scene) -> u64 {
    let name = scene.names().into_iter().find(|name| name.ends_with(".seg")).unwrap();
    let segment = std::fs::read(scene.queue.path().join(name)).unwrap();
    let counters = SINKS_OFFSET as usize + size_of::<SinkHead>() + offset_of!(SinkHead, dropped);
    let counters = &segment[counters..][..size_of::<u64>() * DROPS * LEVEL_CLASSES];
    counters.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).sum()
}

#[test]
fn records_dropped_on_the_way_change_no_record_number() {
    let mut dice = Dice::new();
    let (mut all, mut missing, mut told) = (0, 0, 0);
    for round in 0..rounds() {
        let scene = Scene::with_service(own_test!("child_process"));
        let mut service = Service::start(scene.target.to_str().unwrap());
        let weather = [Weather::Slow, Weather::Restarting, Weather::Cutting][round as usize % 3];
        let accepted = killed(Task::LogToServiceBeside, &scene, &mut service, weather, &mut dice);
        let dropped = dropped(&scene);
        let report = recover::recover(scene.queue.path(), |_| true, recover::RecoverOptions::default()).unwrap();
        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "{weather:?}: {report:?}");

        let mut seen = HashSet::new();
        for message in service.messages() {
            if message.ends_with("records dropped: the queue was full") || message.starts_with("the queue is ") {
                told += 1;
                continue;
            }
            let words: Vec<u32> = message.split(' ').take(2).map(|word| word.parse().unwrap()).collect();
            assert!(seen.insert((words[0], words[1])), "{weather:?}: {message} came twice");
        }
        let in_all: u64 = accepted.values().map(|newest| u64::from(*newest) + 1).sum();
        let lost = in_all.saturating_sub(seen.len() as u64);
        // Recovery finds some of the dropped records in the lanes.
        assert!(lost <= dropped, "{weather:?}: {lost} are missing, {dropped} were dropped");
        (all, missing) = (all + in_all, missing + lost);
    }
    println!("{} kills, {all} records, {missing} dropped, {told} messages of it", rounds());
}
