"""The service as a process: started, asked how much CPU it used, stopped."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from ports import free_port  # its folder was added by run

HERE = Path(__file__).resolve().parent
START_SECONDS = 30.0
STOP_SECONDS = 15.0


class Server:
    """One run of the service, with its log files in `folder`."""

    def __init__(self, python: str, folder: Path, logspool: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.log"):
            old.unlink()
        self.folder = folder
        self.port = free_port()
        program = ["-m", "logspool", "run", "-m", "uvicorn"] if logspool else ["-m", "uvicorn"]
        options = ["app:app", "--app-dir", str(HERE), "--host", "127.0.0.1", "--port", str(self.port)]
        command = [python, *program, *options, "--log-config", str(HERE / "logging.json")]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("LOGSPOOL")}
        with (folder / "console.log").open("wb") as console, (folder / "errors.log").open("wb") as errors:
            # A session of its own: Ctrl-C reaches the demonstration alone, which then ends the service.
            self.process = subprocess.Popen(
                command, cwd=folder, env=variables, stdout=console, stderr=errors, start_new_session=True
            )

    def wait_until_up(self) -> None:
        """Wait until the service answers, or say why it does not."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        words = (self.folder / "errors.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the service did not come up (exit code {self.process.poll()}):\n{words}")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process, all threads, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """End the service as Ctrl-C would, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()
