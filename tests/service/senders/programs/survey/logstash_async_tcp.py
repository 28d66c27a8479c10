"""python-logstash-async: JSON lines of Logstash over TCP."""

import common
from logstash_async.handler import AsynchronousLogstashHandler

common.log_all(AsynchronousLogstashHandler(common.HOST, common.TCP, database_path=None))
