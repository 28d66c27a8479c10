"""Write the container image of the service: from scratch, with the static program and nothing that could be attacked.

It is an archive in the layout of OCI, which podman, skopeo, docker and containerd read. No program for images is
needed, and the same contents make the same bytes.
"""

import gzip
import hashlib
import io
import json
import tarfile
import time
from pathlib import Path

import linked_crates
import rebuildable
import wheels
from environment import ROOT
from wheel_targets import Target

#: No user of the host has this number by habit; images "from scratch" name it `nonroot`.
USER = 65532

#: The names of processors in images.
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


def make(program: Path, target: Target, version: str) -> Path:
    """Write the image of a program, and beside it the list of the linked crates; return the path of the image."""
    crates = linked_crates.linked("logspool-server", target.rust)
    files = {
        "usr/bin/logspool": (0o755, program.read_bytes()),
        "etc/logspool/serve.toml": (0o644, (ROOT / "packaging/package/serve.toml").read_bytes()),
        "etc/passwd": (0o644, f"logspool:x:{USER}:{USER}::/var/lib/logspool:/sbin/nologin\n".encode()),
        "usr/share/doc/logspool/notices.txt": (0o644, linked_crates.notices(crates).encode()),
        "usr/share/doc/logspool/LICENSE-MIT": (0o644, (ROOT / "LICENSE-MIT").read_bytes()),
        "usr/share/doc/logspool/LICENSE-APACHE": (0o644, (ROOT / "LICENSE-APACHE").read_bytes()),
    }
    layer = _layer(files)
    packed = gzip.compress(layer, 9, mtime=0)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(rebuildable.time()))
    configuration = {
        "created": created,
        "architecture": PROCESSORS[target.processor],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/logspool"],
            "Cmd": ["serve", "--config", "/etc/logspool/serve.toml"],
            "ExposedPorts": {"9020/tcp": {}, "9021/udp": {}, "9080/tcp": {}},
            "Volumes": {"/var/lib/logspool": {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "logspool",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    }
    blobs: list[bytes] = []

    def described(kind: str, content: bytes) -> dict[str, object]:
        blobs.append(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": _digest(content), "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", _json(configuration)),
        "layers": [described("layer.v1.tar+gzip", packed)],
    }
    entry = described("manifest.v1+json", _json(manifest))
    entry["platform"] = {"architecture": PROCESSORS[target.processor], "os": "linux"}
    entry["annotations"] = {"org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    parts = {"oci-layout": (0o644, _json({"imageLayoutVersion": "1.0.0"})), "index.json": (0o644, _json(index))}
    parts |= {f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": (0o644, blob) for blob in blobs}
    made = wheels.DIST / f"logspool-{version}-{PROCESSORS[target.processor]}.oci.tar"
    made.write_bytes(_tar(parts, {}))
    made.with_suffix(".cdx.json").write_text(linked_crates.sbom("logspool", version, crates))
    return made


def _layer(files: dict[str, tuple[int, bytes]]) -> bytes:
    # The service writes into these folders.
    own = {"var/lib/logspool": (0o750, USER), "tmp": (0o1777, 0)}
    above = {str(folder) for name in [*files, *own] for folder in Path(name).parents if str(folder) != "."}
    folders = dict.fromkeys(above, (0o755, 0)) | own
    return _tar(files, folders)


def _tar(files: dict[str, tuple[int, bytes]], folders: dict[str, tuple[int, int]]) -> bytes:
    """Return an archive whose bytes follow from its contents."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted([*files, *folders]):
            info = tarfile.TarInfo(name)
            info.mtime = rebuildable.time()
            if name in folders:
                info.type = tarfile.DIRTYPE
                info.mode, info.uid = folders[name]
                info.gid = info.uid
                archive.addfile(info)
            else:
                info.mode, content = files[name]
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return written.getvalue()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
