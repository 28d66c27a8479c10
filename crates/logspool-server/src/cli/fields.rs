//! `logspool fields`.

use super::failure::CommandFailure;
use super::query;
use crate::query::Field;

/// List the fields of the stored records with their most frequent values.
///
/// Examples: `logspool fields --since 1h`, `logspool fields user --since 1d`.
#[derive(Debug, clap::Args)]
pub(super) struct FieldsArguments {
    /// A field: list its values. Default: the 20 most frequent fields, with ten values each.
    field: Option<String>,
    #[command(flatten)]
    options: query::QueryOptions,
}

pub(super) fn run(arguments: FieldsArguments) -> Result<(), CommandFailure> {
    let expression = match arguments.field {
        Some(name) => format!("* | count by {}", Field::named(&name)),
        None => "* | facets".to_owned(),
    };
    query::ask(&expression, &arguments.options)
}
