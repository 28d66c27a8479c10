"""Certificates for tests, made with the command openssl as in the how-to."""

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Pair(NamedTuple):
    """Paths of a certificate and its key."""

    certificate: Path
    key: Path


def authority(folder: Path, name: str) -> Pair:
    """Make a certificate authority."""
    return _made(
        folder, name, "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"
    )


def issued(folder: Path, name: str, by: Pair, names: str = "DNS:localhost,IP:127.0.0.1") -> Pair:
    """Make a certificate for a service with these names, or for a client."""
    options = ("-CA", by.certificate, "-CAkey", by.key, "-addext", "basicConstraints=critical,CA:FALSE")
    return _made(folder, name, *options, "-addext", f"subjectAltName={names}")


def server(folder: Path) -> "tuple[Path, Pair]":
    """Make an authority and a certificate of a server; return the authority's certificate, and the server's pair."""
    made = authority(folder, "ca")
    return made.certificate, issued(folder, "server", made)


def _made(folder: Path, name: str, *options: "str | Path") -> Pair:
    made = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", *_NEW_KEY, "-keyout", made.key, "-out", made.certificate, "-days", "2"]
    subprocess.run([*command, "-subj", f"/CN={name}", *options], check=True, capture_output=True)
    return made


def context(shown: Pair, clients: "Pair | None" = None) -> ssl.SSLContext:
    """Return the TLS context of a service with this certificate; with `clients`, each client must show one, too."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*shown)
    if clients is not None:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(clients.certificate)
    return made
