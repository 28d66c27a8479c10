"""Make the packages of the service, .deb and .rpm, and its container image, each with the list of the linked crates.

The program comes out of the wheel of the service: for glibc into the packages, the static one into the image. So they
hold a program that the trials of wheels have run. The packages are tried where the script runs as root on Debian.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

import debian
import environment
import image
import linked_crates
import native_package
import package_trials
import rebuildable
import terminal
import wheel_targets
import wheel_trials
import wheels
from environment import BUILD, ROOT
from wheel_targets import TARGETS, Target

FILES = ROOT / "packaging" / "package"

#: The limit of the image in bytes: 20 MiB.
IMAGE_LIMIT = 20 << 20

RPM_NAMES = {"x86_64": "x86_64", "aarch64": "aarch64"}


def program_of(target: Target, built: bool) -> Path:
    """Return the program of the newest wheel of the service for a target, which is built first unless it is there."""
    found = sorted(wheels.DIST.glob(f"logspool_service-*{target.tag}_{target.processor}*.whl"))
    wheel = found[-1] if found and not built else wheels.build_service(target)
    folder = BUILD / "programs" / target.name
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".data/scripts/logspool"))
        (folder / "logspool").write_bytes(archive.read(name))
    (folder / "logspool").chmod(0o755)
    return folder / "logspool"


def command_of(program: Path, target: Target) -> list[str]:
    """Return the words that start a program of a target here."""
    if target.processor == os.uname().machine:
        return [str(program)]
    root = wheel_trials.c_library_root(target)
    if root is None:
        raise terminal.fail("the package libc6 cannot be fetched: packages for other processors are made on Debian")
    return [f"qemu-{target.processor}-static", "-L", str(root), str(program)]


def fill(tree: Path, program: Path, command: list[str], completions: str) -> None:
    """Put the files of both packages into a folder; `completions` is the place of the ones for zsh."""
    _put(tree / "usr/bin/logspool", program.read_bytes(), 0o755)
    for unit in ("logspool.service", "logspool.socket"):
        _put(tree / "usr/lib/systemd/system" / unit, (ROOT / "packaging/systemd" / unit).read_bytes())
    _put(tree / "etc/logspool/serve.toml", (FILES / "serve.toml").read_bytes())
    with tempfile.TemporaryDirectory(prefix="logspool-man-") as pages:
        subprocess.run([*command, "man", pages], check=True)
        for page in Path(pages).iterdir():
            _put(tree / f"usr/share/man/man1/{page.name}.gz", _zipped(page.read_bytes()))
    places = {
        "bash": "bash-completion/completions/logspool",
        "fish": "fish/vendor_completions.d/logspool.fish",
        "zsh": completions,
    }
    for shell, place in places.items():
        done = subprocess.run([*command, "completions", shell], check=True, capture_output=True)
        _put(tree / "usr/share" / place, done.stdout)


def make_deb(program: Path, target: Target, version: str) -> Path:
    """Make the package for Debian and return its path in dist/."""
    architecture = wheel_trials.ARCHITECTURES[target.processor]
    with tempfile.TemporaryDirectory(prefix="logspool-deb-") as name:
        tree = Path(name) / "tree"
        fill(tree, program, command_of(program, target), "zsh/vendor-completions/_logspool")
        documents = tree / "usr/share/doc/logspool"
        crates = linked_crates.linked("logspool-server", target.rust)
        _put(documents / "notices.txt.gz", _zipped(linked_crates.notices(crates).encode()))
        _put(documents / "sbom.cdx.json.gz", _zipped(linked_crates.sbom("logspool", version, crates).encode()))
        terms = (ROOT / "LICENSE-MIT").read_text().strip().splitlines()
        terms = "\n".join(f" {line}" if line else " ." for line in terms)
        _put(documents / "copyright", (FILES / "debian/copyright").read_text().replace("@MIT@", terms).encode())
        date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(rebuildable.time()))
        entry = f"logspool ({version}) unstable; urgency=medium\n\n  * See the changelog of the project.\n\n"
        entry += f" -- logspool authors <authors@logspool.invalid>  {date}\n"
        _put(documents / "changelog.gz", _zipped(entry.encode()))
        overrides = (FILES / "debian/lintian-overrides").read_bytes()
        _put(tree / "usr/share/lintian/overrides/logspool", overrides)
        size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
        words = {"VERSION": version, "ARCHITECTURE": architecture, "SIZE": str(size), "DEPENDS": _needs(program)}
        _put(tree / "DEBIAN/control", _filled(FILES / "debian/control", words))
        _put(tree / "DEBIAN/conffiles", b"/etc/logspool/serve.toml\n")
        sums = subprocess.run(
            "md5sum $(find * -type f ! -path 'DEBIAN/*' | sort)", shell=True, cwd=tree, capture_output=True
        )
        _put(tree / "DEBIAN/md5sums", sums.stdout)
        for script in ("postinst", "prerm", "postrm"):
            _put(tree / "DEBIAN" / script, (FILES / "debian" / script).read_bytes(), 0o755)
        _settle(tree)
        made = wheels.DIST / f"logspool_{version}_{architecture}.deb"
        command = ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(made)]
        environment.run(command, SOURCE_DATE_EPOCH=str(rebuildable.time()))
        return made


def _needs(program: Path) -> str:
    """Return the packages of Debian that have the libraries of a program."""
    packages = {"libgcc_s.so.1": "libgcc-s1"}
    libraries = wheel_targets.needed(program)
    newest = ".".join(map(str, wheel_targets.newest_glibc(program)))
    return ", ".join([f"libc6 (>= {newest})", *sorted({packages[name] for name in libraries if name in packages})])


def make_rpm(program: Path, target: Target, version: str) -> Path:
    """Make the package for Fedora, RHEL and SUSE and return its path in dist/."""
    with tempfile.TemporaryDirectory(prefix="logspool-rpm-") as name:
        tree = Path(name) / "tree"
        fill(tree, program, command_of(program, target), "zsh/site-functions/_logspool")
        documents = tree / "usr/share/doc/logspool"
        crates = linked_crates.linked("logspool-server", target.rust)
        _put(documents / "notices.txt", linked_crates.notices(crates).encode())
        _put(documents / "sbom.cdx.json", linked_crates.sbom("logspool", version, crates).encode())
        for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
            _put(documents / licence, (ROOT / licence).read_bytes())
        _settle(tree)
        words = {"VERSION": version, "TREE": str(tree)}
        _put(Path(name) / "logspool.spec", _filled(FILES / "logspool.spec", words))
        command = ["rpmbuild", "-bb", "--quiet", "--target", f"{target.processor}-linux", "--define", f"_topdir {name}"]
        environment.run([*command, f"{name}/logspool.spec"], SOURCE_DATE_EPOCH=str(rebuildable.time()))
        [made] = Path(name).glob("RPMS/*/*.rpm")
        return Path(shutil.copy(made, wheels.DIST / made.name))


def _filled(template: Path, words: dict[str, str]) -> bytes:
    text = template.read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text.encode()


def _put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def _settle(tree: Path) -> None:
    """Give all files of a tree the time of the commit, and the folders the rights that packages have."""
    for path in [tree, *tree.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (rebuildable.time(), rebuildable.time()))


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def main() -> None:
    """Make the files and try them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = os.uname().machine
    parser.add_argument("--processor", choices=sorted(RPM_NAMES), default=own, help=f"default: {own}")
    parser.add_argument("--kinds", nargs="+", choices=("deb", "rpm", "image"), default=["deb", "rpm", "image"])
    parser.add_argument("--build", action="store_true", help="build the program even if dist/ has its wheel")
    options = parser.parse_args()
    debian.install("rpm lintian debootstrap binutils", "the makers and judges of packages")
    version = native_package.version()
    if {"deb", "rpm"} & set(options.kinds):
        target = TARGETS[f"{options.processor}-manylinux2014"]
        program = program_of(target, options.build)
    if "deb" in options.kinds:
        terminal.step(f"package for Debian, {options.processor}")
        made = make_deb(program, target, version)
        _show(made)
        newer = make_deb(program, target, f"{version}+trial")
        package_trials.try_deb(made, newer, target)
        newer.unlink()
    if "rpm" in options.kinds:
        terminal.step(f"package for Fedora, RHEL and SUSE, {options.processor}")
        made = make_rpm(program, target, version)
        _show(made)
        package_trials.try_rpm(made, target)
    if "image" in options.kinds:
        terminal.step(f"container image, {options.processor}")
        target = TARGETS[f"{options.processor}-musllinux_1_2"]
        program = program_of(target, options.build)
        made = image.make(program, target, version)
        _show(made)
        if made.stat().st_size > IMAGE_LIMIT:
            raise terminal.fail(f"{made.name} has more than {IMAGE_LIMIT} bytes")
        package_trials.try_image(made, target)


def _show(made: Path) -> None:
    print(f"    {made.relative_to(ROOT)}: {made.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
