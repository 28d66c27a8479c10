"""Write the fuzzer's first inputs into a folder, with a folder for each target: `python3 seeds.py FOLDER`.

Most inputs are bytes that other programs have sent, from `crates/logspool-server/tests/corpus`. Python's handlers make
the rest here.
"""

import logging
import logging.handlers
import pathlib
import sys
import urllib.parse

SAMPLES = pathlib.Path(__file__).parent.parent / "crates" / "logspool-server" / "tests" / "samples"

CORPUS = pathlib.Path(__file__).parent.parent / "crates" / "logspool-server" / "tests" / "corpus"

FILES = {
    "pickle": "pickles-*.txt",
    "forward": "forward-*.txt",
    "handshake": "handshake-*.txt",
    "otlp": "otlp-*.txt",
    "gelf": "gelf-*.txt",
}

JSON_LINES = [
    '{"time":"2023-11-14T22:13:20.125Z","level":"WARNING","logger":"shop","message":"a \\"b\\"","line":42,"user":7}',
    '{"@timestamp":1700000000125,"severity":"err","msg":"m","name":"n","pid":1,"thread":2,"list":[1.5,{"a":null}]}',
]

SYSLOG = [
    "<36>Dec 31 00:00:00 web1 sshd[42]: Failed password\n",
    '<165>1 2003-10-11T22:14:15.003Z web1 app 7 ID47 [a@32473 b="3" c="\\"x\\""] \ufeffAn event',
]

RECORD = logging.LogRecord("shop", logging.WARNING, "/srv/shop.py", 7, "took %d ms", (5,), None, "pay")


def sent_by_python() -> dict[str, list[bytes]]:
    """Return the bytes that the handlers of the standard library send, by target."""
    syslog = logging.handlers.SysLogHandler.__new__(logging.handlers.SysLogHandler)
    priority = syslog.encodePriority("user", syslog.mapPriority(RECORD.levelname))
    return {
        "form": [urllib.parse.urlencode(vars(RECORD)).encode()],
        "json_line": [line.encode() for line in JSON_LINES],
        "syslog": [f"<{priority}>{RECORD.getMessage()}\0".encode(), *(message.encode() for message in SYSLOG)],
    }


def recorded(pattern: str) -> list[bytes]:
    """Return the bytes in the files of the corpus; a line has a name, a tab and the bytes in hex."""
    lines = [line for path in sorted(CORPUS.glob(pattern)) for line in path.read_text(encoding="ascii").splitlines()]
    return [bytes.fromhex(line.split("\t")[1]) for line in lines]


def main() -> None:
    """Write the files."""
    seeds = sent_by_python() | {target: recorded(pattern) for target, pattern in FILES.items()}
    # The first byte picks the protocol, in an order that this file does not know.
    samples = [path.read_bytes() for path in sorted(SAMPLES.glob("*.bin"))]
    seeds["protocols"] = [bytes([pick]) + sample for pick in range(len(samples)) for sample in samples]
    for target, contents in seeds.items():
        folder = pathlib.Path(sys.argv[1], target)
        folder.mkdir(parents=True, exist_ok=True)
        for place, content in enumerate(contents):
            (folder / f"{place:03}").write_bytes(content)


if __name__ == "__main__":
    main()
