"""The samples of the page about senders, with the addresses of a test."""

import re
from pathlib import Path

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"


def sample(heading: str) -> str:
    """Return the first block of code under a heading of the page about senders."""
    section = re.split(r"^## ", (HOW_TO / "senders.md").read_text(), flags=re.MULTILINE)
    (found,) = [part for part in section if part.split("\n")[0] == heading]
    return re.findall(r"^```\w*\n(.*?)^```", found, flags=re.MULTILINE | re.DOTALL)[0]


def addressed(text: str, service) -> str:
    """Replace the ports of the page by the ports of a service."""
    ports = {"9020": service.tcp[1], "9021": service.udp[1], "9080": service.url.rsplit(":")[-1]}
    return re.sub(r"\b(9020|9021|9080)\b", lambda port: str(ports[port[0]]), text)
