//! Decides which queries get a place, which query runs next, and which share each peer gets. Uses no threads and no
//! clock.
//!
//! Peers share three resources by the rule of [`crate::share`]:
//! - places: a query holds one from its request until its answer is read;
//! - begun answers, which are running or paused: each may hold a connection to the store;
//! - threads: a query holds one while its turn runs.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::metrics::QueryCounts;
use crate::share::{Refusal, may_take_more};

/// Maximum number of begun answers for each thread. Answers count too if they are paused because the client does not
/// read them.
///
/// Chosen: a smaller value would let a few paused answers block the next query of a peer. A larger one would use more
/// resources: each answer may hold a connection to PostgreSQL, or a few hundred kilobytes for SQLite.
const BEGUN_PER_THREAD: usize = 3;

/// How many queries may run, and how many may be in the scheduler at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerSizes {
    /// Maximum number of query threads.
    pub threads: usize,
    /// Maximum number of queries that wait, run or are being read.
    pub places: usize,
}

/// The phase of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryPhase {
    /// The query is queued, and its answer has not begun.
    Waiting,
    /// The query runs on a thread. Or its client has read, and the query is queued for its next turn.
    Running,
    /// The query waits until its client has read.
    Paused,
    /// All rows of the answer are found, or the query failed.
    Complete,
}

/// The number of a place.
pub type Id = u64;

/// The queues and shares of the peers; see the module documentation. `K` identifies a peer, and `J` is the job of a
/// query.
#[derive(Debug)]
pub struct TurnQueue<K, J> {
    sizes: SchedulerSizes,
    next_id: Id,
    queries: HashMap<Id, ScheduledQuery<K, J>>,
    peers: HashMap<K, PeerQueue>,
    /// Peers with queued queries, in the order of their turns.
    ring: VecDeque<K>,
    begun: usize,
    running: usize,
}

#[derive(Debug)]
struct ScheduledQuery<K, J> {
    peer: K,
    state: QueryState<J>,
    has_begun: bool,
}

#[derive(Debug)]
enum QueryState<J> {
    Queued(J),
    Running {
        /// The client made room during the turn.
        goes_on: bool,
        /// The place was released during the turn.
        is_gone: bool,
    },
    Paused(J),
    Complete,
}

#[derive(Debug, Default)]
struct PeerQueue {
    queue: VecDeque<Id>,
    places: usize,
    begun: usize,
    running: usize,
}

impl<K: Copy + Eq + Hash, J> TurnQueue<K, J> {
    /// Creates the queues, with all places free.
    pub fn new(sizes: SchedulerSizes) -> Self {
        Self {
            sizes,
            next_id: 0,
            queries: HashMap::new(),
            peers: HashMap::new(),
            ring: VecDeque::new(),
            begun: 0,
            running: 0,
        }
    }

    /// Gives a place to a query, and appends the query to the queue of its peer.
    ///
    /// # Errors
    ///
    /// There is no place for the query. The refusal has the reason.
    pub fn add(&mut self, peer: K, job: J) -> Result<Id, Refusal> {
        let limit = self.sizes.places;
        let held = self.peers.get(&peer).map_or(0, |state| state.places);
        Refusal::check(held, limit.saturating_sub(self.queries.len()), limit)?;
        let id = self.next_id;
        self.next_id += 1;
        self.queries.insert(id, ScheduledQuery { peer, state: QueryState::Queued(job), has_begun: false });
        let state = self.peers.entry(peer).or_default();
        state.places += 1;
        state.queue.push_back(id);
        if state.queue.len() == 1 {
            self.ring.push_back(peer);
        }
        Ok(id)
    }

    /// Starts the turn of the next query that may run: the first query of the peer whose turn it is. `None`: no query
    /// may run now.
    pub fn next_runnable(&mut self) -> Option<(Id, J)> {
        for _ in 0..self.ring.len() {
            let peer = self.ring.pop_front()?;
            let id = self.peers.get(&peer).and_then(|state| state.queue.front().copied());
            let Some(id) = id else { continue };
            if !self.may_run(peer, id) {
                self.ring.push_back(peer);
                continue;
            }
            let (Some(question), Some(state)) = (self.queries.get_mut(&id), self.peers.get_mut(&peer)) else {
                continue;
            };
            state.queue.pop_front();
            if !state.queue.is_empty() {
                self.ring.push_back(peer);
            }
            if !std::mem::replace(&mut question.has_begun, true) {
                state.begun += 1;
                self.begun += 1;
            }
            state.running += 1;
            self.running += 1;
            match std::mem::replace(&mut question.state, QueryState::Running { goes_on: false, is_gone: false }) {
                QueryState::Queued(job) => return Some((id, job)),
                _ => unreachable!("only queued questions are in a queue"),
            }
        }
        None
    }

    fn may_run(&self, peer: K, id: Id) -> bool {
        let (Some(state), Some(question)) = (self.peers.get(&peer), self.queries.get(&id)) else { return false };
        let most_begun = BEGUN_PER_THREAD * self.sizes.threads;
        may_take_more(state.running, self.sizes.threads.saturating_sub(self.running))
            && (question.has_begun || may_take_more(state.begun, most_begun.saturating_sub(self.begun)))
    }

    /// Ends a turn of a query that has to wait for its reader. Returns the job if the place was released.
    pub fn pause(&mut self, id: Id, job: J) -> Option<J> {
        let Some((goes_on, is_gone)) = self.end_turn(id) else { return Some(job) };
        if is_gone {
            self.remove(id);
            return Some(job);
        }
        self.set(id, QueryState::Paused(job));
        if goes_on {
            self.resume(id);
        }
        None
    }

    /// Ends the last turn of a query.
    pub fn complete(&mut self, id: Id) {
        let Some((_, is_gone)) = self.end_turn(id) else { return };
        self.end_begun(id);
        if is_gone {
            self.remove(id);
        } else {
            self.set(id, QueryState::Complete);
        }
    }

    /// Queues a paused query after its reader has made room. The query goes to the front of its peer's queue. If the
    /// query is still running, it is queued at the end of the turn.
    pub fn resume(&mut self, id: Id) {
        let Some(question) = self.queries.get_mut(&id) else { return };
        match std::mem::replace(&mut question.state, QueryState::Complete) {
            QueryState::Paused(job) => {
                let peer = question.peer;
                question.state = QueryState::Queued(job);
                let state = self.peers.entry(peer).or_default();
                state.queue.push_front(id);
                if state.queue.len() == 1 {
                    self.ring.push_back(peer);
                }
            }
            QueryState::Running { is_gone, .. } => question.state = QueryState::Running { goes_on: true, is_gone },
            state => question.state = state,
        }
    }

    /// Releases a place. Returns the job and whether the query has begun. `None`: the query is running or complete. A
    /// running query keeps its place until its turn ends.
    pub fn release(&mut self, id: Id) -> Option<(J, bool)> {
        let question = self.queries.get_mut(&id)?;
        let has_begun = question.has_begun;
        let job = match std::mem::replace(&mut question.state, QueryState::Complete) {
            QueryState::Running { goes_on, .. } => {
                question.state = QueryState::Running { goes_on, is_gone: true };
                return None;
            }
            QueryState::Queued(job) | QueryState::Paused(job) => Some(job),
            QueryState::Complete => None,
        };
        if job.is_some() && has_begun {
            self.end_begun(id);
        }
        self.remove(id);
        job.map(|job| (job, has_begun))
    }

    /// The phase of a query. `None`: it has no place.
    pub fn phase(&self, id: Id) -> Option<QueryPhase> {
        let question = self.queries.get(&id)?;
        Some(match question.state {
            QueryState::Queued(_) if !question.has_begun => QueryPhase::Waiting,
            QueryState::Queued(_) | QueryState::Running { .. } => QueryPhase::Running,
            QueryState::Paused(_) => QueryPhase::Paused,
            QueryState::Complete => QueryPhase::Complete,
        })
    }

    /// The number of queries in each state.
    pub fn counts(&self) -> QueryCounts {
        let waiting = self.peers.values().map(|state| state.queue.len()).sum();
        QueryCounts { waiting, running: self.running, unread: self.queries.len() - waiting - self.running }
    }

    /// True if a query could run now.
    pub fn has_next(&self) -> bool {
        self.ring.iter().any(|peer| {
            let id = self.peers.get(peer).and_then(|state| state.queue.front());
            id.is_some_and(|id| self.may_run(*peer, *id))
        })
    }

    fn set(&mut self, id: Id, state: QueryState<J>) {
        if let Some(question) = self.queries.get_mut(&id) {
            question.state = state;
        }
    }

    /// Ends a turn. Returns whether the client made room during the turn, and whether the place was released.
    fn end_turn(&mut self, id: Id) -> Option<(bool, bool)> {
        let question = self.queries.get(&id)?;
        let QueryState::Running { goes_on, is_gone } = question.state else { return None };
        let state = self.peers.get_mut(&question.peer)?;
        state.running -= 1;
        self.running -= 1;
        if is_gone {
            self.end_begun(id);
        }
        Some((goes_on, is_gone))
    }

    fn end_begun(&mut self, id: Id) {
        let Some(question) = self.queries.get_mut(&id) else { return };
        if std::mem::replace(&mut question.has_begun, false)
            && let Some(state) = self.peers.get_mut(&question.peer)
        {
            state.begun -= 1;
            self.begun -= 1;
        }
    }

    fn remove(&mut self, id: Id) {
        let Some(question) = self.queries.remove(&id) else { return };
        let Some(state) = self.peers.get_mut(&question.peer) else { return };
        state.queue.retain(|queued| *queued != id);
        if state.queue.is_empty() {
            self.ring.retain(|peer| *peer != question.peer);
        }
        state.places -= 1;
        if state.places == 0 {
            self.peers.remove(&question.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: SchedulerSizes = SchedulerSizes { threads: 4, places: 64 };

    /// A turn queue whose jobs are texts, for example the letter of the peer and a number.
    fn turns(sizes: SchedulerSizes) -> TurnQueue<char, &'static str> {
        TurnQueue::new(sizes)
    }

    fn run(turns: &mut TurnQueue<char, &'static str>) -> Vec<(Id, &'static str)> {
        std::iter::from_fn(|| turns.next_runnable()).collect()
    }

    #[test]
    fn peers_take_turns_and_no_peer_gets_all_threads() {
        let mut turns = turns(SIZES);
        for job in ["a1", "a2", "a3"] {
            turns.add('a', job).unwrap();
        }
        turns.add('b', "b1").unwrap();
        turns.add('c', "c1").unwrap();

        let first = run(&mut turns);
        assert_eq!(["a1", "b1", "c1"], first.iter().map(|(_, job)| *job).collect::<Vec<_>>().as_slice());
        assert!(!turns.has_next());
        turns.complete(first[1].0);
        turns.complete(first[2].0);
        assert_eq!(["a2"], run(&mut turns).iter().map(|(_, job)| *job).collect::<Vec<_>>().as_slice());
        assert_eq!(QueryCounts { waiting: 1, running: 2, unread: 2 }, turns.counts());
    }

    #[test]
    fn a_peer_has_a_share_of_the_places_until_it_gives_them_back() {
        let mut turns = turns(SIZES);
        let places: Vec<_> = std::iter::from_fn(|| turns.add('a', "a").ok()).collect();
        assert_eq!(22, places.len());
        assert_eq!(Err(Refusal::Share { held: 22, limit: 64 }), turns.add('a', "a"));
        assert!(turns.add('b', "b").is_ok());

        for id in places {
            assert_eq!(Some(("a", false)), turns.release(id));
        }
        assert!(turns.add('a', "a").is_ok());
        assert_eq!((2, 2), (turns.queries.len(), turns.ring.len()));
    }

    #[test]
    fn unread_answers_hold_no_thread_and_only_a_share_of_the_begun_answers() {
        let mut turns = turns(SIZES);
        while turns.add('a', "a").is_ok() {}
        let mut paused = Vec::new();
        while let Some((id, job)) = turns.next_runnable() {
            assert_eq!(None, turns.pause(id, job));
            paused.push(id);
        }
        assert_eq!((4, 0, 18), (paused.len(), turns.running, turns.counts().waiting));

        // Another peer still gets answers. The first peer gets answers again when it reads, or releases a place.
        let other = turns.add('b', "b").unwrap();
        assert_eq!(Some((other, "b")), turns.next_runnable());
        turns.resume(paused[0]);
        assert_eq!(Some((paused[0], "a")), turns.next_runnable());
        turns.complete(paused[0]);
        assert_eq!(
            (Some(QueryPhase::Complete), Some(QueryPhase::Paused)),
            (turns.phase(paused[0]), turns.phase(paused[1]))
        );
        assert!(turns.next_runnable().is_some());
        assert_eq!(Some(("a", true)), turns.release(paused[1]));
    }

    #[test]
    fn room_made_before_the_pause_is_not_forgotten() {
        let mut turns = turns(SIZES);
        let id = turns.add('a', "a").unwrap();
        assert_eq!(Some((id, "a")), turns.next_runnable());
        turns.resume(id);
        assert_eq!(None, turns.pause(id, "a"));

        assert_eq!(Some((id, "a")), turns.next_runnable());
        assert_eq!(None, turns.pause(id, "a"));
        assert_eq!(None, turns.next_runnable());
    }

    #[test]
    fn a_query_released_while_it_runs_keeps_its_place_until_its_turn_ends() {
        let mut turns = turns(SIZES);
        let (one, two) = (turns.add('a', "one").unwrap(), turns.add('a', "two").unwrap());
        assert_eq!(2, run(&mut turns).len());
        assert_eq!((None, None), (turns.release(one), turns.release(two)));
        assert_eq!(2, turns.queries.len());

        assert_eq!(Some("one"), turns.pause(one, "one"));
        turns.complete(two);
        assert_eq!(QueryCounts::default(), turns.counts());
        assert_eq!((0, 0, 0), (turns.begun, turns.peers.len(), turns.queries.len()));
    }

    #[test]
    fn one_thread_serves_every_peer() {
        let mut turns = turns(SchedulerSizes { threads: 1, places: 4 });
        for peer in ['a', 'b'] {
            turns.add(peer, "x").unwrap();
        }
        let (first, _) = turns.next_runnable().unwrap();
        assert_eq!(None, turns.next_runnable());
        turns.complete(first);
        assert!(turns.next_runnable().is_some());
    }
}
