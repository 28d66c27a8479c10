"""fluent-logger: Forward over TCP, with the formatter of the page."""

import common
from fluent.handler import FluentHandler, FluentRecordFormatter

NOT_SENT = "args asctime created exc_info filename levelname module msecs msg relativeCreated stack_info taskName"
handler = FluentHandler("shop", host=common.HOST, port=common.TCP, nanosecond_precision=True)
handler.setFormatter(FluentRecordFormatter(exclude_attrs=NOT_SENT.split()))
common.log_all(handler)
