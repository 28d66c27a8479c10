"""Send records by a client of another service.

doors.py elasticsearch|loki|seq|splunk RECORDS URL TOKEN
"""

import json
import logging
import sys
import threading
import urllib.parse

client, file, url, token = sys.argv[1:]
with open(file) as lines:
    RECORDS = json.load(lines)
log = logging.getLogger("shop.cart")
log.setLevel(logging.DEBUG)


def elasticsearch():
    """Send documents in bulk, after the client has checked the server."""
    from elasticsearch import Elasticsearch, helpers

    index = Elasticsearch(url, api_key=token)
    assert index.ping() and index.info()["version"]["number"]
    documents = ({"message": r["message"], "level": r["level"], "logger": "shop.cart", **r["fields"]} for r in RECORDS)
    stored, errors = helpers.bulk(index, ({"_index": "logs", "_source": document} for document in documents))
    assert (len(RECORDS), []) == (stored, errors)


def loki():
    """Push lines with labels."""
    from logging_loki import LokiHandler

    log.addHandler(LokiHandler(url + "/loki/api/v1/push", tags={"job": "shop"}, auth=("user", token), version="1"))
    for record in RECORDS:
        tags = {name: str(value) for name, value in record["fields"].items()}
        log.log(getattr(logging, record["level"]), record["message"], extra={"tags": tags})


def seq():
    """Post events of Seq."""
    from seqlog.structured_logging import SeqLogHandler, StructuredLogger

    handler = SeqLogHandler(url, api_key=token, batch_size=len(RECORDS))
    structured = StructuredLogger("shop.cart", logging.DEBUG)
    structured.addHandler(handler)
    for record in RECORDS:
        structured.log(getattr(logging, record["level"]), "{Text}", Text=record["message"], **record["fields"])
    handler.close()
    # The handler posts on a thread, and its `close` does not wait for it.
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(30)


def splunk():
    """Post events to the HTTP Event Collector."""
    from splunk_handler import SplunkHandler

    place = urllib.parse.urlsplit(url)
    handler = SplunkHandler(
        host=place.hostname,
        port=place.port,
        protocol="http",
        token=token,
        index="main",
        verify=False,
        sourcetype="shop",
        flush_interval=1,
    )
    form = '{"message": %(message)s, "level": "%(levelname)s", "logger": "%(name)s", "fields": %(fields)s}'
    handler.setFormatter(logging.Formatter(form))
    log.addHandler(handler)
    for record in RECORDS:
        level = getattr(logging, record["level"])
        log.log(level, "%s", json.dumps(record["message"]), extra={"fields": json.dumps(record["fields"])})
    handler.force_flush()


{"elasticsearch": elasticsearch, "loki": loki, "seq": seq, "splunk": splunk}[client]()
