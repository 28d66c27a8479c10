"""A program that logs numbered records with fields, unusual characters and exceptions to an address, on command."""

import http_receivers

PROGRAM = """\
import json, logging, sys, time
import logspool

_, options, queue = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
address = options.pop("address")
handler = logspool.handler(address, **options, **queue)
log = logging.getLogger("shop.cart")
log.addHandler(handler)
log.setLevel(logging.DEBUG)
number = 0

def emit(count):
    global number
    longest = 0.0
    began = time.time()
    for _ in range(count):
        fields = {"order": number, "shop": "Zo\\u00eb \\u65e5\\U0001f600", "ratio": 0.25, "items": [1, {"a": None}]}
        called = time.perf_counter()
        if number % 100 == 99:
            try:
                raise ValueError(f"broken {number}")
            except ValueError:
                log.exception("number %d end \\u00e9\\u4e2d\\U0001f600", number, extra=fields)
        elif number % 10 == 5:
            log.warning("number %d end\\nsecond line", number, extra=fields)
        else:
            log.info("number %d end \\u00e9\\u4e2d\\U0001f600", number, extra=fields)
        longest = max(longest, time.perf_counter() - called)
        number += 1
    return {"number": number, "began": began, "ended": time.time(), "longest": longest}

for line in sys.stdin:
    word, value = line.split()
    if word == "log":
        answer = emit(int(value))
    elif word == "long":
        log.info("number %d end " + "x" * int(value), number, extra={"order": number})
        number += 1
        answer = number
    elif word == "flush":
        answer = logspool.flush(float(value))
    else:
        sink = next(iter(logspool.stats().sinks.values()))
        names = ("accepted_for_sink", "written", "queued", "spooled", "dropped")
        answer = {name: sink.total(name) for name in names}
        answer |= {"errors": sink.errors, "error": sink.error, "cut": sink.cut, "problems": logspool.health().reasons}
    print(json.dumps(answer), flush=True)
"""


class Sender(http_receivers.Program):
    """The program. It is another process, and ends with the block."""

    text = PROGRAM

    def __init__(self, folder, queue_dir, address, **options):
        super().__init__(folder, queue_dir, "handler", {"address": address, **options})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0] is None:
            self.end()
        else:
            self.child.kill()
        with http_receivers.programs.ended(self.child):
            pass


def message(number):
    """Return the message of a record."""
    return (
        f"number {number} end\nsecond line" if number % 10 == 5 and number % 100 != 99 else f"number {number} end é中😀"
    )


def level(number):
    """Return the level of a record."""
    return "ERROR" if number % 100 == 99 else "WARNING" if number % 10 == 5 else "INFO"


#: The lines of the program that log.
LINES = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if " log." in line and "fields" in line]

FIELDS = {"shop": "Zoë 日😀", "ratio": 0.25, "items": [1, {"a": None}]}
