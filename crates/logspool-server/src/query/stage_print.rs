//! Writes the stages of a query as text.

use std::fmt::{self, Display, Write};

use super::tree::{Aggregate, AggregateFunction, Bucket, GroupKey, Grouping, Pipeline, Reach, SortKey, StepWork};
use super::{Field, Formula, print, stage_parser, time};

impl Display for Pipeline {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match &step.work {
                // It belongs to the stage `histogram` before it.
                StepWork::Fill { .. } => {}
                StepWork::Group(grouping) => match self.steps.get(at + 1).map(|next| &next.work) {
                    Some(StepWork::Fill { interval_ns, by }) => {
                        write!(to, " | histogram {}", time::delay_text(*interval_ns))?;
                        if let Some(by) = by {
                            write!(to, " by {by}")?;
                        }
                    }
                    _ => write!(to, " | {grouping}")?,
                },
                work => write!(to, " | {work}")?,
            }
        }
        Ok(())
    }
}

impl Display for StepWork {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Where(filter) => write!(to, "where {filter}"),
            Self::Group(grouping) => grouping.fmt(to),
            Self::Fill { .. } => Ok(()),
            Self::Sort(keys) => {
                to.write_str("sort ")?;
                list(keys, to)
            }
            Self::Top { rows, field, by } => {
                write!(to, "top {rows} {field}")?;
                by.iter().try_for_each(|by| write!(to, " by {by}"))
            }
            Self::LastBy(field) => write!(to, "last by {field}"),
            Self::Patterns { only_new } => to.write_str(if *only_new { "patterns new" } else { "patterns" }),
            Self::Facets => to.write_str("facets"),
            Self::Compare { length_ns, by } => {
                write!(to, "compare {}", time::delay_text(*length_ns))?;
                by.iter().try_for_each(|by| write!(to, " by {by}"))
            }
            Self::Around { id, reach, by } => {
                match reach {
                    Reach::Time(length) => write!(to, "around {id} {}", time::delay_text(*length))?,
                    Reach::Records(count) => write!(to, "around {id} {count}")?,
                }
                by.iter().try_for_each(|by| write!(to, " by {by}"))
            }
            Self::Limit(rows) => write!(to, "limit {rows}"),
            Self::Fields(fields) => {
                to.write_str("fields ")?;
                list(fields, to)
            }
            Self::Let(name, formula) => write!(to, "let {} = {formula}", Field::Extra(name.clone())),
            Self::Parse(field, pattern) => {
                write!(to, "parse {field} /")?;
                let mut is_escaped = false;
                for character in pattern.source().chars() {
                    if character == '/' && !is_escaped {
                        to.write_char('\\')?;
                    }
                    is_escaped = character == '\\' && !is_escaped;
                    to.write_char(character)?;
                }
                to.write_char('/')
            }
        }
    }
}

impl Display for Grouping {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_count {
            to.write_str("count")?;
        } else {
            to.write_str("stats ")?;
            list(&self.aggregates, to)?;
        }
        if !self.keys.is_empty() {
            to.write_str(" by ")?;
            list(&self.keys, to)?;
        }
        Ok(())
    }
}

impl Display for Aggregate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.function.name())?;
        match &self.function {
            AggregateFunction::Share(condition) => write!(to, "({condition})")?,
            function => function.field().iter().try_for_each(|field| write!(to, "({field})"))?,
        }
        if self.name != stage_parser::default_name(&self.function) {
            write!(to, " as {}", Field::Extra(self.name.clone()))?;
        }
        Ok(())
    }
}

impl Display for GroupKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.field.fmt(to)?;
        match self.bucket {
            None => Ok(()),
            Some(Bucket::Time(length)) => write!(to, " {}", time::delay_text(length)),
            Some(Bucket::Number(length)) => write!(to, " {length}"),
        }
    }
}

impl Display for SortKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.field, if self.is_descending { " desc" } else { "" })
    }
}

impl Display for Formula {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(to),
            Self::Column(Field::Extra(name)) if !is_bare(name) => to.write_str(&print::quoted(name)),
            Self::Column(field) => field.name().fmt(to),
            Self::Negative(inner) => write!(to, "-{inner}"),
            Self::Pair(left, sign, right) => write!(to, "({left} {sign} {right})"),
        }
    }
}

/// True for a name that a formula may have without quotes.
fn is_bare(name: &str) -> bool {
    name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_alphanumeric() || "_.".contains(character))
        && Field::named(name) == Field::Extra(name.to_owned())
}

fn list(items: &[impl Display], to: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            to.write_str(", ")?;
        }
        item.fmt(to)?;
    }
    Ok(())
}
