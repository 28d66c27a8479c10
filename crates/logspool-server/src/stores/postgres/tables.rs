//! Checks that the tables still have the form that the steps of `schema` gave them.
//!
//! Without this check a missing or changed column would cause an error for each row, and every record would be put into
//! quarantine.

use std::collections::HashMap;

use tokio_postgres::Client;

use super::connection::{REPAIR_TABLES, ServerFailure};

/// The columns that the store writes and reads, with their types.
const TABLES: [(&str, &[(&str, &str)]); 3] = [
    (
        "records",
        &[
            ("time_ns", "bigint"),
            ("arrived_ns", "bigint"),
            ("process", "bigint"),
            ("thread", "bigint"),
            ("line", "bigint"),
            ("level", "integer"),
            ("logger", "text"),
            ("message", "text"),
            ("file", "text"),
            ("function", "text"),
            ("host", "text"),
            ("process_name", "text"),
            ("thread_name", "text"),
            ("task", "text"),
            ("trace_id", "text"),
            ("span_id", "text"),
            ("exception", "text"),
            ("stack", "text"),
            ("fields", "jsonb"),
        ],
    ),
    (
        "streams",
        &[
            ("stream", "text"),
            ("epoch", "bigint"),
            ("last", "bigint"),
            ("seen", "timestamp with time zone"),
            ("gaps", "text"),
            ("ended", "boolean"),
        ],
    ),
    ("quarantine", &[("received", "timestamp with time zone"), ("reason", "text"), ("record", "text")]),
];

/// Returns each column with its type, and whether it is NOT NULL without a default.
const COLUMNS: &str = "
    SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL)::text,
        a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace('logspool') AND c.relname = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped";

/// Checks that all tables and columns exist and have the expected types.
pub(super) async fn check(client: &Client) -> Result<(), ServerFailure> {
    let names: Vec<_> = TABLES.iter().map(|(table, _)| *table).collect();
    let rows = client.query(COLUMNS, &[&names]).await?;
    let mut found: HashMap<&str, HashMap<&str, (&str, bool)>> = HashMap::new();
    for row in &rows {
        let column = (row.try_get(2)?, row.try_get(3)?);
        found.entry(row.try_get(0)?).or_default().insert(row.try_get(1)?, column);
    }
    match TABLES.iter().find_map(|(table, columns)| difference(table, columns, found.get(table))) {
        Some(difference) => Err(ServerFailure::Fatal(format!("{difference}; {REPAIR_TABLES}"))),
        None => Ok(()),
    }
}

fn difference(table: &str, columns: &[(&str, &str)], found: Option<&HashMap<&str, (&str, bool)>>) -> Option<String> {
    let Some(found) = found else { return Some(format!("the table logspool.{table} does not exist")) };
    for (name, kind) in columns {
        match found.get(name) {
            None => return Some(format!("logspool.{table} has no column {name}")),
            Some((other, _)) if other != kind => {
                return Some(format!("the column {name} of logspool.{table} is {other} instead of {kind}"));
            }
            Some(_) => {}
        }
    }
    let is_known = |name: &str| columns.iter().any(|(known, _)| *known == name);
    let wants = found.iter().find(|(name, (_, is_needed))| *is_needed && !is_known(name));
    wants.map(|(name, _)| format!("the column {name} of logspool.{table} is NOT NULL and has no default"))
}
