"""splunk-handler: the HTTP Event Collector, with the records as JSON."""

import common
from pythonjsonlogger.json import JsonFormatter
from splunk_handler import SplunkHandler

options = {"host": common.HOST, "port": common.HTTP, "protocol": "http", "token": "none", "index": "main"}
handler = SplunkHandler(**options, verify=False, sourcetype="shop", flush_interval=1)
handler.setFormatter(JsonFormatter("{message}{levelname}{name}{created}", style="{"))
close, handler.close = handler.close, lambda: None
common.log_all(handler)
handler.force_flush()
close()
