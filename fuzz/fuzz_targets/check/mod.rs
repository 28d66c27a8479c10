//! Checks that hold for every record, whatever bytes it was made from.

use logspool_server::batch::{Arrival, Batch};
use logspool_server::record::Record;

/// A record comes out of a batch as it was put in, but for the names that fields share and numbers without a form in
/// JSON.
pub fn record(record: &Record<'_>) {
    let mut batch = Batch::default();
    batch.push(record, Arrival { time_ns: 0, host: "" });
    let row = batch.row(0).expect("one record was put in");
    let again = row.record();

    assert_eq!((&*record.logger, &*record.message), (row.logger, row.message));
    assert_eq!(record.exception, again.exception);
    assert_eq!(record.fields.len(), again.fields.len());
    serde_json::to_string(&again).expect("a record has a form in JSON");
}
