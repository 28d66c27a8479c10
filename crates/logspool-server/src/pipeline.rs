//! Runs the stages that no store answers: groups, sorting, formulas and others.
//!
//! A pipeline reads the rows of a store and passes each to the first step. A step passes its rows to the next
//! one, at once or when it has all of them. Steps that keep rows have a limit of memory, because many queries run at the
//! same time.

mod accumulator;
mod answer;
mod compare;
mod distinct;
mod facets;
mod fill;
mod group;
mod item;
mod keep;
mod memory;
mod neighbours;
mod order;
mod patterns;
mod quantiles;
mod rows;
mod run;
mod start;
mod step;

pub use answer::PipelineError;
pub use run::RunningQuery;
