//! Atomic words by which one thread shows another what it has done: the orderings of the whole project, by method.
//!
//! A thread writes data, then calls a method of the first column. Another thread calls a method of the "pairs with"
//! column. If it reads the value of the first thread, or a later value, it also sees the data. The words themselves are
//! plain atomics, in a static, a struct or a shared mapping. Code that needs an ordering calls these methods; `Relaxed`
//! code uses the atomics directly.
//!
//! | method | its ordering | pairs with | weakened by | model |
//! |---|---|---|---|---|
//! | [`Published::publish`] | Release store | `observe`, `exchange` | `word_publish` | `published_data_is_visible` |
//! | [`Published::observe`] | Acquire load | `publish`, `publish_over`, `exchange`, `advance`, `raise` | `word_observe` | all of them |
//! | [`Published::exchange`] | AcqRel swap | itself, `publish`, `observe` | `word_exchange` | `exchanged_data_is_visible_to_both_sides` |
//! | [`Published::publish_over`] | Release exchange; Acquire where it fails | `observe`, itself | `word_publish_over`, `word_find_other` | `both_threads_see_the_first_of_two_published_values` |
//! | [`Counted::advance`] | Release addition | `observe` | `word_advance` | `a_count_makes_the_counted_work_visible` |
//! | [`Counted::advance_both_ways`] | AcqRel addition | itself, `observe` | `word_take_number` | `a_number_makes_earlier_work_visible` |
//! | [`Counted::raise`] | Release maximum | `observe` | `word_raise` | `a_raised_mark_makes_the_work_below_it_visible` |
//! | [`Counted::add_bits`] | Release or | `observe` | `word_add_bits` | `a_bit_makes_its_data_visible` |
//! | [`Entered::try_enter`] | Acquire exchange | `leave` | `word_enter` | `only_one_thread_at_a_time_runs` |
//! | [`Entered::leave`] | Release store | `try_enter` | `word_leave` | `only_one_thread_at_a_time_runs` |

use crate::sync::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, guarded};

/// A word that publishes data written before it.
pub trait Published {
    /// Type of the value that the word holds.
    type Value: Copy;

    /// Stores `value`. A thread that observes it sees everything that this thread did before.
    fn publish(&self, value: Self::Value);

    /// Loads the value, and makes visible what its writer did before it published the value.
    fn observe(&self) -> Self::Value;

    /// Stores `value` and returns the old value: a `publish` and an `observe` in one step.
    fn exchange(&self, value: Self::Value) -> Self::Value;

    /// Publishes `value` if the word holds `expected`.
    ///
    /// # Errors
    ///
    /// Returns the value that the word holds instead. What the writer of that value did before is visible.
    fn publish_over(&self, expected: Self::Value, value: Self::Value) -> Result<(), Self::Value>;
}

/// A number that moves in one direction and publishes what was done before each move.
pub trait Counted: Published {
    /// Adds one and returns the new value. A thread that observes it sees what this thread did before.
    fn advance(&self) -> Self::Value;

    /// As [`Counted::advance`]. In addition, the caller sees everything that the thread that stored the previous number
    /// did before it.
    fn advance_both_ways(&self) -> Self::Value;

    /// Raises the word to `value` if it is smaller, and publishes what this thread did before.
    fn raise(&self, value: Self::Value);

    /// Sets the bits of `mask`, and publishes what this thread did before.
    fn add_bits(&self, mask: Self::Value);
}

/// A flag that lets one thread at a time in, without waiting.
pub trait Entered {
    /// Sets the flag. Returns whether it was clear. If so, the caller is inside and sees what the previous thread did
    /// inside.
    fn try_enter(&self) -> bool;

    /// Clears the flag and publishes what this thread did inside. Only a thread that is inside may call it.
    fn leave(&self);
}

macro_rules! published {
    ([$($generics:ident)?] $word:ty => $value:ty) => {
        impl$(<$generics>)? Published for $word {
            type Value = $value;

            #[inline(always)]
            fn publish(&self, value: $value) {
                self.store(value, guarded("word_publish", Ordering::Release));
            }

            #[inline(always)]
            fn observe(&self) -> $value {
                self.load(guarded("word_observe", Ordering::Acquire))
            }

            #[inline(always)]
            fn exchange(&self, value: $value) -> $value {
                self.swap(value, guarded("word_exchange", Ordering::AcqRel))
            }

            #[inline(always)]
            fn publish_over(&self, expected: $value, value: $value) -> Result<(), $value> {
                let shown = guarded("word_publish_over", Ordering::Release);
                let found = guarded("word_find_other", Ordering::Acquire);
                self.compare_exchange(expected, value, shown, found).map(|_| ())
            }
        }
    };
}

macro_rules! counted {
    ($word:ty) => {
        impl Counted for $word {
            #[inline(always)]
            fn advance(&self) -> Self::Value {
                self.fetch_add(1, guarded("word_advance", Ordering::Release)) + 1
            }

            #[inline(always)]
            fn advance_both_ways(&self) -> Self::Value {
                self.fetch_add(1, guarded("word_take_number", Ordering::AcqRel)) + 1
            }

            #[inline(always)]
            fn raise(&self, value: Self::Value) {
                self.fetch_max(value, guarded("word_raise", Ordering::Release));
            }

            #[inline(always)]
            fn add_bits(&self, mask: Self::Value) {
                self.fetch_or(mask, guarded("word_add_bits", Ordering::Release));
            }
        }
    };
}

published!([] AtomicBool => bool);
published!([] AtomicI32 => i32);
published!([] AtomicU32 => u32);
published!([] AtomicU64 => u64);
published!([T] AtomicPtr<T> => *mut T);
counted!(AtomicU32);
counted!(AtomicU64);

impl Entered for AtomicBool {
    #[inline(always)]
    fn try_enter(&self) -> bool {
        !self.swap(true, guarded("word_enter", Ordering::Acquire))
    }

    #[inline(always)]
    fn leave(&self) {
        self.store(false, guarded("word_leave", Ordering::Release));
    }
}

impl Entered for AtomicU32 {
    #[inline(always)]
    fn try_enter(&self) -> bool {
        self.compare_exchange(0, 1, guarded("word_enter", Ordering::Acquire), Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    fn leave(&self) {
        self.store(0, guarded("word_leave", Ordering::Release));
    }
}
