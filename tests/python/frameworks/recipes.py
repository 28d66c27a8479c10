"""Runs the programs and commands of the pages on frameworks unchanged, but on a port of their own."""

import contextlib
import http.client
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ports import free_port
from suite import pages, programs
from suite.waiting import until

PAGES = pages.ROOT / "docs" / "how-to" / "frameworks"

#: Ten times the time that the slowest server takes to start on a busy machine.
SECONDS = 120

#: The port that the pages show.
PORT_OF_PAGES = "8000"


class Recipe:
    """The programs of a page, written to a folder with a port of their own."""

    def __init__(self, page: str, folder: Path, queue_dir: Path, **variables: str):
        self.page, self.folder, self.queue_dir = page, folder, queue_dir
        self.port = free_port()
        environment = programs.environment(programs.STOCK, queue_dir, **variables)
        path = f"{Path(sys.executable).parent}:{environment['PATH']}"
        self.environment = {**environment, "PATH": path, "PYTHONUNBUFFERED": "1", "HOME": str(folder)}
        for block in pages.blocks(PAGES / page):
            match = re.match(r"# ([\w./]+\.py)\n", block.text)
            if block.language == "python" and match:
                self.write(match[1], block.text)

    def write(self, name: str, text: str) -> None:
        """Write a program with the port of this recipe."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(PORT_OF_PAGES, str(self.port)), encoding="utf-8")

    def change(self, name: str, old: str, new: str) -> None:
        """Replace a text in a program."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, (name, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def command(self, start: str) -> str:
        """Return the command of the page that begins with `start`."""
        blocks = [block for block in pages.blocks(PAGES / self.page) if block.language == "console"]
        found = [text.strip() for block in blocks for text, _ in pages.commands(block) if text.startswith(start)]
        assert start in found or len(found) == 1, (self.page, start, found)
        return (start if start in found else found[0]).replace("\\\n", " ").replace(PORT_OF_PAGES, str(self.port))

    def run(self, start: str) -> str:
        """Run the command of the page that begins with `start` and ends by itself; return its output."""
        return self._run(["bash", "-c", self.command(start)])

    def call(self, arguments: "list[str]") -> str:
        """Run the interpreter in the folder; return its output."""
        return self._run([sys.executable, *arguments])

    def _run(self, words: "list[str]") -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    @contextlib.contextmanager
    def serving(self, start: str, *, options: str = "", has_port: bool = True) -> "Iterator[Server]":
        """Run the page's command that begins with `start`, plus `options`; yield it when it accepts connections."""
        words = shlex.split(f"{self.command(start)} {options}")
        variables = dict(self.environment)
        while re.fullmatch(r"\w+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        # A stand-in for the program, if there is one, is in the folder.
        own = self.folder / "bin" / words[0]
        program = own if own.exists() else Path(sys.executable).with_name(words[0])
        with open(self.folder / "out.txt", "wb") as out, open(self.folder / "err.txt", "wb") as err:
            process = subprocess.Popen(
                [program, *words[1:]], cwd=self.folder, env=variables, stdout=out, stderr=err, start_new_session=True
            )
        server = Server(process, self.folder, self.port, self.queue_dir)
        with programs.ended(process):
            if has_port:
                until(lambda: process.poll() is not None or _accepts(self.port), SECONDS, f"a server on {self.port}")
                assert process.poll() is None, server.text("err.txt") + server.text("out.txt")
            yield server


class Server:
    """A server that a command of a page starts; its output is in `out.txt` and `err.txt` of the folder."""

    def __init__(self, process: subprocess.Popen, folder: Path, port: int, queue_dir: Path):
        self.process, self.folder, self.port, self.queue_dir = process, folder, port, queue_dir

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Send one request and return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def ask_all(self, numbers: range, threads: int = 4) -> None:
        """Request each order once, from several threads; repeat a request that fails because of a restart."""

        def one(number: int) -> None:
            def is_answered() -> bool:
                try:
                    status, _ = self.ask(f"/orders/{number}")
                except (ConnectionError, http.client.BadStatusLine):
                    return False
                assert status == 200
                return True

            until(is_answered, SECONDS, f"an answer for order {number}")

        with ThreadPoolExecutor(threads) as workers:
            list(workers.map(one, numbers))

    def text(self, name: str) -> str:
        """Return the content of a file of the folder; empty if the file does not exist."""
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def wait_for(self, name: str, pattern: str, count: int = 1) -> None:
        """Wait until a file has `count` matches of `pattern`."""
        try:
            until(lambda: len(re.findall(pattern, self.text(name))) >= count, SECONDS, f"{count} of {pattern!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text('err.txt')[-3000:]}\n{self.text(name)[-3000:]}") from None

    def queues(self) -> int:
        """Return how many processes have a queue of logspool now."""
        return len(list(self.queue_dir.glob("*.seg")))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to the first process and wait for its end; return its status."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def numbers(text: str, pattern: str = r"order (\d+)$") -> list[int]:
    """Return the numbers in the lines of a text, in ascending order."""
    return sorted(int(number) for number in re.findall(pattern, text, re.MULTILINE))


def background(function, *arguments) -> threading.Thread:
    """Run a function on a thread."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread
