"""Format the sources with rustfmt and ruff, and apply the fixes of ruff."""

import environment
import rust_sources
from lint import PYTHON_FOLDERS


def main() -> None:
    """Run rustfmt over all Rust, and ruff over the folders with Python."""
    environment.run(["cargo", "fmt", "--all"])
    environment.run(["rustfmt", "--edition", "2024", *rust_sources.files_declared_by_macros()])
    program = str(environment.tools() / "bin" / "ruff")
    folders = [folder for folder in PYTHON_FOLDERS if any((environment.ROOT / folder).rglob("*.py"))]
    environment.run([program, "check", "--fix", "--quiet", *folders])
    environment.run([program, "format", "--quiet", *folders])


if __name__ == "__main__":
    main()
