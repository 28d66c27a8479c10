//! Creates and changes the tables in numbered steps. Also creates and removes the partitions of `records`, one per UTC
//! day.
//!
//! Partitions are created in advance for the days around today. A record of any other day is stored in the default
//! partition, `records_other`, so a sender with a wrong clock creates no tables. When a day gets its partition, its
//! records are moved there from the default partition. If the day has more than [`MOST_MOVED`] records there, it gets
//! no partition.

use chrono::{DateTime, NaiveDate};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::connection::{ServerFailure, reason};
use super::tables;

/// Each step changes the tables from one version to the next. A published step is never changed. `LETTERS` is replaced
/// by the result of [`letters`].
const STEPS: &[&str] = &[
    "
    CREATE TABLE logspool.records (
        time_ns bigint NOT NULL,
        process bigint,
        thread bigint,
        line bigint,
        level integer NOT NULL,
        logger text NOT NULL,
        message text LETTERS NOT NULL,
        file text,
        function text,
        host text,
        process_name text,
        thread_name text,
        task text,
        trace_id text,
        span_id text,
        exception text,
        stack text,
        fields jsonb
    ) PARTITION BY RANGE (time_ns);
    CREATE TABLE logspool.records_other PARTITION OF logspool.records DEFAULT;
    CREATE INDEX records_time ON logspool.records USING brin (time_ns) WITH (autosummarize = on);
    CREATE INDEX records_trace ON logspool.records (trace_id) WHERE trace_id IS NOT NULL;
    CREATE TABLE logspool.streams (
        stream text PRIMARY KEY,
        epoch bigint NOT NULL,
        last bigint NOT NULL,
        seen timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE logspool.quarantine (
        received timestamptz NOT NULL DEFAULT now(),
        reason text NOT NULL,
        record text NOT NULL
    );
",
    // Records of earlier versions have no time of arrival. The server changes the tables' definitions only.
    "ALTER TABLE logspool.records ADD COLUMN arrived_ns bigint",
    // The marks of earlier versions have no gaps, and those of ended streams were deleted. Most marks are now of ended
    // streams and never change again, so a half of each page would be wasted.
    "ALTER TABLE logspool.streams ADD COLUMN gaps text, ADD COLUMN ended boolean NOT NULL DEFAULT false,
        SET (fillfactor = 90);
     CREATE INDEX streams_with_gaps ON logspool.streams (stream) WHERE gaps IS NOT NULL",
];

/// Key of the advisory lock that services take before they change the tables, so that one service at a time does so.
/// The key is the ASCII text "logspool".
const LOCK: i64 = 0x6c6f_6773_706f_6f6c;

/// The oldest server version that has all features which this store uses.
const OLDEST_SERVER: i32 = 120_000;

/// Days before and after today that get a partition. They cover late records of yesterday and clocks that are ahead.
/// They also cover times when the service cannot create partitions, for example because a long backup locks the tables.
const DAYS_BEHIND: i64 = 1;
const DAYS_AHEAD: i64 = 3;

/// Maximum number of records of a day that are moved to its partition. Chosen: moving them takes less than a second.
/// The tables are locked meanwhile.
const MOST_MOVED: i64 = 10_000;

/// Maximum number of records that one statement removes. Chosen: the statement takes less than a second. No records are
/// written meanwhile.
const PIECE: u64 = 10_000;

/// How long a change of the tables waits for locks. Queries that begin after the change wait for it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

const DAY_NS: i64 = 86_400 * 1_000_000_000;

/// Checks the server, then creates the tables or updates them to the current version.
pub(super) async fn prepare(client: &Client) -> Result<(), ServerFailure> {
    let row = client
        .query_one(
            // An acknowledgement promises a durable commit, so `synchronous_commit = off` is overridden. Other values
            // are kept, because the administrator chose them.
            "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int4,
                CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END",
            &[],
        )
        .await?;
    let (encoding, server): (&str, i32) = (row.try_get(0)?, row.try_get(1)?);
    if encoding != "UTF8" {
        return Err(ServerFailure::Fatal(format!(
            "the database has the encoding {encoding}: create one with CREATE DATABASE ... ENCODING 'UTF8' \
             TEMPLATE template0"
        )));
    }
    if server < OLDEST_SERVER {
        return Err(ServerFailure::Fatal("the server is older than PostgreSQL 12".to_owned()));
    }
    client.batch_execute("BEGIN").await?;
    match step(client).await {
        Ok(()) => {
            client.batch_execute("COMMIT").await?;
            tables::check(client).await
        }
        Err(failure) => {
            client.batch_execute("ROLLBACK").await?;
            Err(failure)
        }
    }
}

async fn step(client: &Client) -> Result<(), ServerFailure> {
    client.query_one("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let row = client
        .query_one("SELECT to_regnamespace('logspool') IS NOT NULL, to_regclass('logspool.version') IS NOT NULL", &[])
        .await?;
    let (has_schema, has_version): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    // Create the schema only if it is missing: if it exists, the role does not need the right to create schemas.
    if !has_schema {
        client.batch_execute("CREATE SCHEMA logspool").await?;
    }
    if !has_version {
        client
            .batch_execute(
                "CREATE TABLE logspool.version (version integer NOT NULL); INSERT INTO logspool.version VALUES (0)",
            )
            .await?;
    }
    let version: i32 = client.query_one("SELECT version FROM logspool.version", &[]).await?.try_get(0)?;
    let done = usize::try_from(version).unwrap_or_default();
    if done > STEPS.len() {
        return Err(ServerFailure::Fatal(format!(
            "its tables have version {version}, this logspool supports versions up to {}: use a newer logspool, \
             or another database",
            STEPS.len()
        )));
    }
    let letters = letters(client).await?;
    for sql in &STEPS[done..] {
        client.batch_execute(&sql.replace("LETTERS", &letters)).await?;
    }
    if done < STEPS.len() {
        client
            .execute("UPDATE logspool.version SET version = $1", &[&i32::try_from(STEPS.len()).unwrap_or(i32::MAX)])
            .await?;
    }
    Ok(())
}

/// Returns the collation clause of the message column. The collation must know the letters of all languages, because it
/// decides where words end. The clause is empty if the database's own collation knows them. The locale `C` knows ASCII
/// letters only.
async fn letters(client: &Client) -> Result<String, ServerFailure> {
    let row = client
        .query_one(
            "SELECT CASE WHEN 'ü' ~ '[[:alnum:]]' THEN '' ELSE (
                SELECT 'COLLATE ' || quote_ident(collname)
                FROM unnest(ARRAY['pg_c_utf8', 'C.utf8', 'C.UTF-8', 'und-x-icu']::name[]) WITH ORDINALITY known (name, place)
                JOIN pg_collation ON collname = name AND collnamespace = 'pg_catalog'::regnamespace
                    AND collencoding IN (-1, pg_char_to_encoding('UTF8'))
                ORDER BY place LIMIT 1
            ) END",
            &[],
        )
        .await?;
    Ok(row.try_get::<_, Option<String>>(0)?.unwrap_or_default())
}

/// The day of a time, counted in days since 1970.
pub(super) fn day_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(DAY_NS)
}

/// Creates the missing partitions of the days around today.
pub(super) async fn make_partitions(client: &Client, today: i64) -> Result<(), ServerFailure> {
    let there = partitions(client).await?;
    for day in today - DAYS_BEHIND..=today + DAYS_AHEAD {
        if there.contains(&day) {
            continue;
        }
        let Some(name) = partition(day) else { continue };
        let (from, to) = (day * DAY_NS, (day + 1) * DAY_NS);
        let others = client
            .query_one(
                "SELECT count(*) FROM (SELECT FROM logspool.records_other WHERE time_ns >= $1 AND time_ns < $2 LIMIT $3) day",
                &[&from, &to, &(MOST_MOVED + 1)],
            )
            .await?;
        match others.try_get::<_, i64>(0)? {
            0 => {
                let bounds = format!("FOR VALUES FROM ({from}) TO ({to})");
                let sql = format!("CREATE TABLE IF NOT EXISTS logspool.{name} PARTITION OF logspool.records {bounds}");
                change(client, &sql).await?;
            }
            1..=MOST_MOVED => move_to_partition(client, &name, from, to).await?,
            _ => {}
        }
    }
    Ok(())
}

/// Creates a partition and moves the default partition's records for these times into it.
async fn move_to_partition(client: &Client, name: &str, from: i64, to: i64) -> Result<(), ServerFailure> {
    let sql = format!(
        "CREATE TABLE logspool.{name}
            (LIKE logspool.records INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE);
         WITH moved AS (
            DELETE FROM logspool.records_other WHERE time_ns >= {from} AND time_ns < {to} RETURNING *
         )
         INSERT INTO logspool.{name} SELECT * FROM moved;
         ALTER TABLE logspool.records ATTACH PARTITION logspool.{name} FOR VALUES FROM ({from}) TO ({to})"
    );
    let done = change(client, &sql).await;
    if let Err(ServerFailure::Server(error)) = &done
        && error.code().is_some_and(|code| !matches!(code.code(), IN_USE | DISK_FULL))
    {
        // The tables were changed in a way that does not allow the move, or another service is storing records of that
        // day. The records of that day stay in the default partition.
        tracing::warn!(
            "cannot create logspool.{name}: {}; the records of its day stay in logspool.records_other",
            reason(error)
        );
        return Ok(());
    }
    done
}

/// True if the service did not run the day before yesterday, as far as the partitions show. If the service had run,
/// that day would have a partition, because a running service creates the partitions of all days around its current
/// day.
pub(super) async fn was_away(client: &Client, today: i64) -> Result<bool, ServerFailure> {
    let there = partitions(client).await?;
    let last = today - DAYS_BEHIND - 1;
    Ok(there.iter().any(|day| *day < last) && !there.contains(&last))
}

/// Removes the records of all days before `day`. Returns true if more may remain for the next call.
pub(super) async fn remove_before(client: &Client, day: i64) -> Result<bool, ServerFailure> {
    for old in partitions(client).await?.into_iter().filter(|old| *old < day) {
        if let Some(name) = partition(old) {
            change(client, &format!("DROP TABLE IF EXISTS logspool.{name}")).await?;
        }
    }
    let before = day.saturating_mul(DAY_NS);
    let others = remove_piece(client, "records_other", "time_ns < $1", &before).await?;
    let quarantined =
        remove_piece(client, "quarantine", "received < to_timestamp($1)", &((day * 86_400) as f64)).await?;
    Ok(others || quarantined)
}

/// Removes up to [`PIECE`] rows that match the condition. Returns true if more may remain.
async fn remove_piece(
    client: &Client,
    table: &str,
    condition: &str,
    than: &(dyn ToSql + Sync),
) -> Result<bool, ServerFailure> {
    let piece = format!("SELECT ctid FROM logspool.{table} WHERE {condition} LIMIT {PIECE}");
    let sql = format!("DELETE FROM logspool.{table} WHERE ctid = ANY (ARRAY({piece}))");
    Ok(client.execute(&sql, &[than]).await? == PIECE)
}

/// The server's SQLSTATE for a lock timeout, which means that the tables are in use.
const IN_USE: &str = "55P03";

/// The server's SQLSTATE for a full disk.
pub(super) const DISK_FULL: &str = "53100";

/// True if a failed table change may succeed later. Its SQLSTATE then says that the tables are in use or that the disk
/// is full. Or it says that another service has just put records of that day into the default partition.
pub(super) fn is_passing(code: &str) -> bool {
    matches!(code, IN_USE | DISK_FULL | "23514")
}

/// The days that have a partition.
async fn partitions(client: &Client) -> Result<Vec<i64>, ServerFailure> {
    let rows = client
        .query(
            "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'logspool.records'::regclass",
            &[],
        )
        .await?;
    rows.iter()
        .filter_map(|row| row.try_get(0).map(day_of_partition).transpose())
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

/// Changes partitions in a transaction with a short lock timeout.
async fn change(client: &Client, sql: &str) -> Result<(), ServerFailure> {
    let sql = format!("BEGIN; {LOCK_TIMEOUT}; SELECT pg_advisory_xact_lock({LOCK}); {sql}; COMMIT");
    let done = client.batch_execute(&sql).await;
    if done.is_err() {
        client.batch_execute("ROLLBACK").await?;
    }
    Ok(done?)
}

fn partition(day: i64) -> Option<String> {
    Some(DateTime::from_timestamp(day.checked_mul(86_400)?, 0)?.format("records_%Y_%m_%d").to_string())
}

fn day_of_partition(name: &str) -> Option<i64> {
    let date = NaiveDate::parse_from_str(name, "records_%Y_%m_%d").ok()?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_named_after_its_day() {
        for (name, time_ns) in [
            ("records_1970_01_01", 0),
            ("records_1969_12_31", -1),
            ("records_2024_02_29", 1_709_251_199_999_999_999),
            ("records_2262_04_11", i64::MAX),
        ] {
            let day = day_of(time_ns);

            assert_eq!(Some(name.to_owned()), partition(day));
            assert_eq!(Some(day), day_of_partition(name));
        }
        assert_eq!(None, day_of_partition("records_other"));
    }
}
