"""A browser without a window, driven by the DevTools protocol over a pipe."""

import base64
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# Ten times the time that a slow machine needed.
DEADLINE = 60.0

# The browser reads its orders from descriptor 3 and answers on 4.
START = "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 103); os.dup2(w, 104); os.dup2(103, 3); \
os.dup2(104, 4); os.execvp(sys.argv[3], sys.argv[3:])"


class Browser:
    """A browser with one page."""

    def __init__(self, program: str, folder: Path):
        """Start it with an empty profile in the folder."""
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        options = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars"]
        # No network requests of the browser's own, and no sandbox: a container does not allow it.
        options += ["--disable-background-networking", "--disable-component-update", "--no-sandbox"]
        options += ["--disable-dev-shm-usage", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(orders), str(answers), program, *options],
            pass_fds=(orders, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder), "TZ": "UTC"},
        )
        os.close(orders)
        os.close(answers)
        self.number, self.rest, self.session = 0, b"", None
        #: Complaints of the page's console and of the browser itself.
        self.complaints: list[str] = []
        targets = self.order("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.order("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.order(f"{domain}.enable")

    def order(self, method: str, **parameters: Any) -> "dict[str, Any]":
        """Have the browser do something, and return its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.orders, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _next(self) -> "dict[str, Any]":
        until = time.monotonic() + DEADLINE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self.answers, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(message["params"]["entry"]["text"])
        return message

    def go(self, url: str) -> None:
        """Open an address. An address that differs from the open page only after `#` does not load the page again."""
        self.order("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self.order("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + DEADLINE
        while not self.evaluate(f"!!({expression})"):
            assert time.monotonic() < until, f"not in time: {expression}; the page: {self.text()}"
            time.sleep(0.02)

    def text(self) -> str:
        """Return the text that can be seen."""
        return self.evaluate("document.body.innerText")

    def texts(self, selector: str) -> "list[str]":
        """Return the texts of the elements that a selector of CSS finds."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")

    def click(self, selector: str) -> None:
        """Click the first element that a selector finds."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, text: str) -> None:
        """Write a text into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def press(self, key: str, text: str = "") -> None:
        """Press a key of the keyboard and release it; `text` is the text that the key writes."""
        codes = {"Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9}
        code = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        if text:
            code["text"] = text
        self.order("Input.dispatchKeyEvent", type="keyDown", **code)
        self.order("Input.dispatchKeyEvent", type="keyUp", **code)

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        """Give the page a size and the system's colours."""
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.order("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        """Keep what can be seen as a picture."""
        path.write_bytes(base64.b64decode(self.order("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """End it."""
        self.session = None
        os.write(self.orders, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.orders)
        os.close(self.answers)
