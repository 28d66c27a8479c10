"""Bring the Python sources into ruff's form and mend what ruff can mend."""

import environment
from lint import PYTHON_FOLDERS


def main() -> None:
    """Run ruff over the folders that hold Python."""
    program = str(environment.tools() / "bin" / "ruff")
    folders = [folder for folder in PYTHON_FOLDERS if any((environment.ROOT / folder).rglob("*.py"))]
    environment.run([program, "check", "--fix", "--quiet", *folders])
    environment.run([program, "format", "--quiet", *folders])


if __name__ == "__main__":
    main()
