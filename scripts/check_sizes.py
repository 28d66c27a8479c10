"""Fail when a source file is too long to be read in one go, or a module is not named by its concept."""

import subprocess
from pathlib import Path

import terminal

ROOT = Path(__file__).resolve().parent.parent

# Chosen: a file is split at 600 lines; at twice the number a reader loses the thread, at half files fall apart.
MAX_LINES = 800

# Its pages are generated from measurements, however long these are.
MADE = ROOT / "bench" / "runs"

SUFFIXES = {".rs", ".py", ".pyi", ".sh", ".toml", ".md", ".c", ".h", ".hpp"}


def sources() -> list[Path]:
    """Return the files of the project that people write."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:  # an unpacked archive has no history to ask
        skipped = {"target", "build", "dist"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part in skipped or part.startswith(".venv") for part in path.relative_to(ROOT).parts)
        ]
    written = (path for path in set(paths) if path.suffix in SUFFIXES and MADE not in path.parents)
    return sorted(path for path in written if path.is_file())


def main() -> None:
    """Print every file above the limit."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    too_long = {path: lines for path, lines in lengths.items() if lines > MAX_LINES}
    for path, lines in too_long.items():
        print(f"{path.relative_to(ROOT)}: {lines} lines, {MAX_LINES} are allowed")
    if too_long:
        raise terminal.fail(f"{len(too_long)} files are too long: split them by concept")
    if unnamed := [str(path.relative_to(ROOT)) for path in lengths if path.name == "mod.rs" and "src" in path.parts]:
        raise terminal.fail(f"a module with a folder is a file beside it, folder.rs: {', '.join(unnamed)}")
    terminal.note(f"{len(lengths)} files, the longest has {max(lengths.values(), default=0)} lines")


if __name__ == "__main__":
    main()
