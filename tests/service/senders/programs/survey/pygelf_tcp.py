"""pygelf: GELF over TCP."""

import common
import pygelf

common.log_all(pygelf.GelfTcpHandler(host=common.HOST, port=common.TCP, include_extra_fields=True, debug=True))
