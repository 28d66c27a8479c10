//! Creates the running steps of a pipeline.

use super::compare::CompareStep;
use super::facets::FacetsStep;
use super::fill::FillStep;
use super::group::GroupStep;
use super::keep::{LastStep, SortStep, TopStep};
use super::neighbours::NeighboursStep;
use super::patterns::PatternsStep;
use super::rows;
use super::step::RunningStep;
use crate::query::plan::TimeRange;
use crate::query::{Pipeline, Reach, StepWork};

/// Creates the steps of a pipeline. At most `limit` rows of its result are needed.
pub(super) fn start(pipeline: &Pipeline, range: TimeRange, limit: Option<u64>) -> Vec<Box<dyn RunningStep>> {
    let steps = &pipeline.steps;
    let start = |(at, step): (usize, &crate::query::PipelineStep)| -> Box<dyn RunningStep> {
        match &step.work {
            StepWork::Where(filter) => Box::new(rows::WhereStep::new(filter.clone())),
            StepWork::Group(grouping) => Box::new(GroupStep::new(grouping.clone())),
            StepWork::Fill { interval_ns, by } => Box::new(FillStep::new(*interval_ns, by.clone(), range)),
            StepWork::Sort(keys) => {
                let (most, is_cut) = match steps.get(at + 1).map(|next| &next.work) {
                    Some(StepWork::Limit(rows)) => (Some(*rows), false),
                    Some(_) => (None, false),
                    None => (limit, true),
                };
                Box::new(SortStep::new(keys.clone(), most, is_cut))
            }
            StepWork::Top { rows, field, by } => Box::new(TopStep::new(*rows, field.clone(), by.clone())),
            StepWork::LastBy(field) => Box::new(LastStep::new(field.clone())),
            StepWork::Patterns { only_new } => Box::new(PatternsStep::new(range.since_ns.filter(|_| *only_new))),
            StepWork::Facets => Box::new(FacetsStep::default()),
            StepWork::Compare { length_ns, by } => Box::new(CompareStep::new(*length_ns, by.clone(), range)),
            StepWork::Around { id, reach, .. } => {
                let most = match reach {
                    Reach::Time(_) => None,
                    Reach::Records(count) => Some(*count),
                };
                Box::new(NeighboursStep::new(id.clone(), most))
            }
            StepWork::Limit(rows) => Box::new(rows::LimitStep::new(*rows)),
            StepWork::Fields(fields) => Box::new(rows::FieldsStep::new(fields)),
            StepWork::Let(name, formula) => Box::new(rows::LetStep::new(name, formula.clone())),
            StepWork::Parse(field, pattern) => Box::new(rows::ParseStep::new(field.clone(), pattern.clone())),
        }
    };
    steps.iter().enumerate().map(start).collect()
}
