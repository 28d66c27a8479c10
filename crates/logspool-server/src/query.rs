//! Queries to the stores: a small language, parsed to a tree. Parse errors have a position.
//!
//! ```text
//! level>=warning "disk full" (host=web-1 or host=web-2) not logger~"^urllib3" status>=500 | count by logger
//! ```
//!
//! [`parse`] turns a text into a tree. A [`Matcher`] applies the tree to a record in memory; [`Sql`] writes it as SQL
//! for a store. [`plan`] gives a store the limits of its search.

mod error;
mod field;
mod formula;
pub mod functions;
mod lexer;
mod list;
mod literal;
mod matcher;
mod misread;
pub mod parser;
pub mod path;
mod pattern;
pub mod plan;
mod print;
mod sql;
mod stage_parser;
mod stage_print;
mod stages;
pub mod time;
mod tree;
pub mod words;

pub use error::QueryError;
pub use field::FieldKind;
pub use literal::{large_integer, number_in};
pub use matcher::{FieldValues, Matcher, compare_numbers, holds};
pub use parser::parse;
pub use pattern::{Pattern, PatternError};
pub use print::quoted_value;
pub use sql::{Dialect, Parameter, Sql};
pub use stage_parser::{FACET_COLUMNS, default_name};
pub use tree::{
    Aggregate, AggregateFunction, Bucket, ColumnKind, Comparison, Expression, Field, Filter, Formula, GroupKey,
    Grouping, Literal, Phrase, Pipeline, PipelineStep, Query, Reach, RowColumn, SortKey, Stage, StepWork,
};
