"""Elasticsearch's client for Python: documents in bulk."""

import datetime
import traceback

import common
from elasticsearch import Elasticsearch, helpers


def document(record):
    """Return the document of a record, as an application would make it."""
    made = {"@timestamp": datetime.datetime.now(datetime.timezone.utc), "log.level": record["level"].lower()}
    made |= {"message": record["message"], "log.logger": "shop.cart", **record["fields"]}
    if record["raises"]:
        try:
            common.fail()
        except ValueError:
            made["error.stack_trace"] = traceback.format_exc()
    return {"_index": "logs", "_source": made}


stored, errors = helpers.bulk(Elasticsearch(common.URL), map(document, common.RECORDS))
assert (len(common.RECORDS), []) == (stored, errors)
