"""Trials of the packages and of the image: judged by lintian and systemd, installed, run, updated and removed.

A trial that cannot be made on this machine says why; a failed trial ends the script.
"""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import environment
import image
import terminal
import wheel_trials
from environment import BUILD, ROOT
from wheel_targets import Target
from wheel_trials import ENTER, OLD_DEBIAN, RECORDS, Place

#: The most that `systemd-analyze security` may find wrong with the unit, of 10 (its exposure).
EXPOSURE = 2.0

#: A line that the trial adds to the configuration, which an update must keep.
CHANGED = "# changed by an administrator\n"

#: The unit runs as a user of its own; this is one in the trial.
USER = 65532


def try_deb(package: Path, newer: Path, target: Target) -> None:
    """Judge a package by lintian and systemd, then install, run, update and purge it in a Debian of debootstrap."""
    _judge(package)
    judge_unit()
    with _debian(target) as root:
        if isinstance(root, str):
            print(f"    not installed: {root}")
            return
        _dpkg(root, "--install", package)
        place = _place(root, target)
        wheel_trials.serve_alone(place, "/var/lib/logspool")
        settings = root / "etc/logspool/serve.toml"
        settings.write_text(settings.read_text() + CHANGED)
        _dpkg(root, "--install", newer)
        if CHANGED not in settings.read_text():
            raise terminal.fail("an update replaced the changed configuration")
        wheel_trials.serve_alone(place, "/var/lib/logspool", RECORDS)
        _enter(root, "dpkg", "--purge", "logspool")
        _refuse_rest(root, "purge")
        print(f"    installed, {RECORDS} records found, updated, {2 * RECORDS} found, purged {place.description}")


def try_rpm(package: Path, target: Target) -> None:
    """Install, run and remove a package by rpm, in a root folder without rpm's database."""
    for program in ("rpm",):
        if shutil.which(program) is None:
            print(f"    not tried: {program} is missing")
            return
    with _debian(target) as root:
        if isinstance(root, str):
            print(f"    not installed: {root}")
            return
        rpm = ["rpm", "--root", str(root), "--dbpath", "/var/lib/rpm"]
        environment.run([*rpm, "--initdb"])
        # The root folder is a Debian, whose libraries rpm does not know.
        environment.run([*rpm, "--install", "--nodeps", "--ignorearch", "--ignoreos", str(package)])
        place = _place(root, target)
        wheel_trials.serve_alone(place, "/var/lib/logspool")
        environment.run([*rpm, "--erase", "logspool"])
        shutil.rmtree(root / "var/lib/logspool")
        shutil.rmtree(root / "var/lib/rpm")
        _refuse_rest(root, "removal")
        print(f"    installed by rpm, {RECORDS} records found, removed {place.description}")


def try_image(made: Path, target: Target) -> None:
    """Check an image's hashes and its user, and run its program in a root folder that has the image's files alone."""
    configuration, layer = unpacked(made)
    if configuration["config"]["User"] != f"{image.USER}:{image.USER}":
        raise terminal.fail(f"{made.name} runs as {configuration['config']['User']}")
    if os.geteuid() != 0:
        print("    not run: only root can change the root folder")
        return
    with tempfile.TemporaryDirectory(prefix="logspool-image-") as name:
        root = Path(name)
        # Only its owner may enter a temporary folder.
        root.chmod(0o755)
        subprocess.run(["tar", "-x", "--numeric-owner", "-C", name], input=layer, check=True)
        for folder in ("dev", "proc"):
            (root / folder).mkdir()
        command = _as_user(root, target)
        if isinstance(command, str):
            print(f"    not run: {command}")
            return
        place = Place(
            "in the files of the image", [*command, *configuration["config"]["Entrypoint"]], root, "", _path()
        )
        wheel_trials.serve_alone(place, "/var/lib/logspool")
        print(f"    {RECORDS} records stored and found {place.description}, as user {image.USER}")


def unpacked(made: Path) -> "tuple[dict, bytes]":
    """Return the configuration and the layer of an image, whose hashes are checked."""
    with tarfile.open(made) as archive:

        def blob(described: dict) -> bytes:
            algorithm, _, digest = described["digest"].partition(":")
            content = archive.extractfile(f"blobs/{algorithm}/{digest}").read()
            if hashlib.sha256(content).hexdigest() != digest or len(content) != described["size"]:
                raise terminal.fail(f"{made.name}: the hash of {digest} is wrong")
            return content

        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(blob(index["manifests"][0]))
        configuration = json.loads(blob(manifest["config"]))
        layer = gzip.decompress(blob(manifest["layers"][0]))
    if f"sha256:{hashlib.sha256(layer).hexdigest()}" != configuration["rootfs"]["diff_ids"][0]:
        raise terminal.fail(f"{made.name}: the hash of the layer is wrong")
    return configuration, layer


def _judge(package: Path) -> None:
    if shutil.which("lintian") is None:
        print("    not judged by lintian: it is missing")
        return
    command = ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", str(package)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise terminal.fail(f"lintian: {done.stdout}{done.stderr}")
    print("    lintian finds nothing")


def judge_unit() -> None:
    if shutil.which("systemd-analyze") is None:
        print("    the unit was not judged: systemd-analyze is missing")
        return
    unit = ROOT / "packaging/systemd/logspool.service"
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE * 10:.0f}", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    if done.returncode != 0:
        raise terminal.fail(f"systemd-analyze: {last}")
    print(f"    systemd-analyze: {last.strip('→ ')}")


@contextlib.contextmanager
def _debian(target: Target) -> Iterator[Path | str]:
    """Make a Debian by debootstrap, as small as it can be; it is made once and copied."""
    if target.processor != os.uname().machine:
        yield f"programs of a Debian for {target.processor} do not run here"
        return
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        yield "it takes root and debootstrap to make a Debian: apt-get install debootstrap"
        return
    made = BUILD / "roots" / f"debootstrap-{OLD_DEBIAN}"
    with environment.locked("roots"):
        if not made.exists():
            terminal.step(f"making a Debian {OLD_DEBIAN}")
            part = Path(f"{made}.part")
            shutil.rmtree(part, ignore_errors=True)
            command = ["debootstrap", "--variant=minbase", OLD_DEBIAN, str(part), "http://deb.debian.org/debian"]
            if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
                yield f"debootstrap cannot make a Debian {OLD_DEBIAN}"
                return
            part.rename(made)
    with tempfile.TemporaryDirectory(prefix="logspool-debian-") as name:
        root = Path(name) / "root"
        environment.run(["cp", "--archive", str(made), str(root)])
        yield root


def _place(root: Path, target: Target) -> Place:
    """Return the installed program, run as systemd would: as another user that owns the folder of the store."""
    data = root / "var/lib/logspool"
    data.mkdir(exist_ok=True)
    os.chown(data, USER, USER)
    for name in ("logspool.service", "logspool.socket"):
        if not (root / "usr/lib/systemd/system" / name).is_file():
            raise terminal.fail(f"the package lacks the unit {name}")
    command = _as_user(root, target)
    return Place(f"in a Debian {OLD_DEBIAN}", [*command, "/usr/bin/logspool"], root, "", _path())


def _as_user(root: Path, target: Target) -> list[str] | str:
    """Return the words before a program that a user without rights runs in a root folder."""
    enter = [*ENTER[:-1], ENTER[-1].replace("chroot", f"chroot --userspec={USER}:{USER} --groups=")]
    if target.processor == os.uname().machine:
        return [*enter, str(root)]
    emulator = shutil.which(f"qemu-{target.processor}-static")
    if emulator is None:
        return f"qemu-{target.processor}-static is missing: apt-get install qemu-user-static"
    shutil.copy(emulator, root / "emulator")
    return [*enter, str(root), "/emulator"]


def _dpkg(root: Path, action: str, package: Path) -> None:
    shutil.copy(package, root / "tmp" / package.name)
    _enter(root, "dpkg", "--force-confold", action, f"/tmp/{package.name}")
    (root / "tmp" / package.name).unlink()


def _enter(root: Path, *command: str) -> None:
    done = subprocess.run([*ENTER, str(root), *command], env=_path(), capture_output=True, text=True)
    if done.returncode != 0:
        raise terminal.fail(f"{' '.join(command)} fails: {done.stdout}{done.stderr}")


def _refuse_rest(root: Path, what: str) -> None:
    """End the script where files of the package are left."""
    left = [path for folder in ("etc", "usr", "var", "run") for path in (root / folder).rglob("*logspool*")]
    if left:
        raise terminal.fail(f"the {what} leaves {', '.join(map(str, left))}")


def _path() -> dict[str, str]:
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
