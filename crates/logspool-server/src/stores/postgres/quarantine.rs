//! Stores rows after the server has refused at least one of them. Rows that the server accepts are stored, and refused
//! rows are put into quarantine.
//!
//! The rows are copied to an unlogged table without constraints. A block of PL/pgSQL then stores them one by one. So
//! the number of messages does not depend on the number of refused rows, and a sender of many refused records delays
//! others only briefly.

use tokio_postgres::Client;

use super::connection::ServerFailure;
use super::copy::copy;
use super::rows::{self, COLUMNS, SELECTED};
use super::tables;
use crate::batch::Row;
use crate::record::Record;

/// Stores all rows that the server accepts. Puts the other rows into quarantine and returns their number.
pub(super) async fn store_or_quarantine<'a>(
    client: &Client,
    rows: impl IntoIterator<Item = Row<'a>>,
) -> Result<u64, ServerFailure> {
    // Check the tables first: if a person changed them, the records are not the cause of the error.
    tables::check(client).await?;
    client.batch_execute(&table()).await?;
    let statement = format!("COPY logspool.sifted ({COLUMNS}, record) FROM STDIN BINARY");
    copy(client, &*statement, rows, |row, to| rows::put_as_text(row, &as_json(row), to)).await?;
    client.batch_execute(&store_each()).await?;
    let quarantine = "INSERT INTO logspool.quarantine (reason, record)
        SELECT reason, record FROM logspool.sifted WHERE reason IS NOT NULL";
    let quarantined = client.execute(quarantine, &[]).await?;
    client.batch_execute("DROP TABLE logspool.sifted").await?;
    Ok(quarantined)
}

/// Returns the statement that creates the table. The same transaction drops the table. If another transaction creates
/// it at the same time, that transaction waits.
fn table() -> String {
    format!(
        "CREATE UNLOGGED TABLE logspool.sifted AS
            SELECT {SELECTED}, NULL::text AS record, NULL::text AS reason FROM logspool.records WITH NO DATA"
    )
}

/// Returns the statement that stores each row separately and records why a row is refused. The error classes are the
/// same as in [`super::writer::is_refusal`]. The reason has the same form as in [`super::connection::reason`].
fn store_each() -> String {
    format!(
        "DO $$
        DECLARE
            place tid;
            what text;
            detail text;
            hint text;
            code text;
        BEGIN
            FOR place IN SELECT ctid FROM logspool.sifted LOOP
                BEGIN
                    INSERT INTO logspool.records ({COLUMNS})
                        SELECT {COLUMNS}::jsonb FROM logspool.sifted WHERE ctid = place;
                EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded
                    OR plpgsql_error
                THEN
                    GET STACKED DIAGNOSTICS what = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                        hint = PG_EXCEPTION_HINT, code = RETURNED_SQLSTATE;
                    UPDATE logspool.sifted SET reason = concat_ws(', ', what, nullif(rtrim(detail, '.'), ''),
                        nullif(rtrim(hint, '.'), '')) || ' (' || code || ')' WHERE ctid = place;
                END;
            END LOOP;
        END $$"
    )
}

/// Returns a record as JSON. Its fields are inserted as text and not parsed: the parser has a depth limit, so deeply
/// nested fields would be lost.
fn as_json(row: &Row<'_>) -> String {
    let record: Record<'_> = Row { fields: None, ..*row }.record();
    let mut json = serde_json::to_string(&record).expect("a record has no keys but text");
    if let Some(fields) = row.fields {
        json.pop();
        json.push_str(",\"fields\":");
        json.push_str(fields);
        json.push('}');
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Arrival, Batch};
    use crate::value::Value;

    #[test]
    fn a_quarantined_record_is_complete() {
        let record = Record {
            level: 40,
            logger: "shop".into(),
            message: "a\0".into(),
            fields: vec![("k".into(), Value::Int(1))],
            ..Record::default()
        };
        let mut batch = Batch::default();
        batch.push(&record, Arrival { time_ns: 5, host: "" });

        let expected =
            r#"{"time_ns":5,"arrived_ns":5,"level":40,"logger":"shop","message":"a\u0000","fields":{"k":1}}"#;
        assert_eq!(expected, as_json(&batch.row(0).unwrap()));
    }
}
