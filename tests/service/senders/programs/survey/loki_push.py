"""python-logging-loki: lines with labels."""

import common
from logging_loki import LokiHandler

handler = LokiHandler(f"{common.URL}/loki/api/v1/push", tags={"job": "shop"}, version="1")
common.log_all(handler, lambda fields: {"tags": fields})
