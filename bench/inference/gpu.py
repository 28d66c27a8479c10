"""A decode loop on a GPU with one record a token: the loop that makes the tokens is the thread that logs.

The model has the shape of an 8-billion-parameter Llama with random weights: its answers mean nothing, its times are
real. No server is involved. Each logger runs between two runs without logging, in the same process.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference import modes, sinks

LOGGERS = ("none", "stdlib", "queue", "loguru", "structlog", "logspool")


@dataclass(frozen=True)
class Shape:
    """The sizes of the model and of the batch."""

    layers: int = 32
    width: int = 4096
    inner: int = 14_336
    heads: int = 32
    key_heads: int = 8
    vocabulary: int = 128_256
    batch: int = 256
    context: int = 256
    seconds: float = 4.0
    repeats: int = 3


TINY = Shape(
    layers=2, width=64, inner=128, heads=4, key_heads=2, vocabulary=512, batch=8, context=32, seconds=0.2, repeats=1
)


class Decoder:
    """The decode step of one batch: every call makes one token for each row."""

    def __init__(self, torch: Any, shape: Shape, device: str) -> None:
        self.torch, self.shape, self.device = torch, shape, device
        kind = torch.bfloat16 if device == "cuda" else torch.float32
        torch.manual_seed(1)

        def weight(rows: int, columns: int) -> Any:
            return torch.randn(rows, columns, device=device, dtype=kind) * columns**-0.5

        size = shape.width // shape.heads
        self.size = size
        key_width = size * shape.key_heads
        self.layers = [
            {
                "qkv": weight(shape.width + 2 * key_width, shape.width),
                "out": weight(shape.width, shape.width),
                "up": weight(2 * shape.inner, shape.width),
                "down": weight(shape.width, shape.inner),
            }
            for _ in range(shape.layers)
        ]
        self.embedding, self.head = weight(shape.vocabulary, shape.width), weight(shape.vocabulary, shape.width)
        cache = (shape.batch, shape.key_heads, shape.context, size)
        self.keys = [torch.zeros(cache, device=device, dtype=kind) for _ in range(shape.layers)]
        self.values = [torch.zeros(cache, device=device, dtype=kind) for _ in range(shape.layers)]
        self.tokens = torch.zeros(shape.batch, device=device, dtype=torch.long)
        self.position = 0

    def step(self) -> list[int]:
        """Return the next token of each row."""
        torch, shape = self.torch, self.shape
        functional = torch.nn.functional
        batch, place = shape.batch, self.position % shape.context
        self.position += 1
        with torch.inference_mode():
            hidden = self.embedding[self.tokens]
            for layer, keys, values in zip(self.layers, self.keys, self.values):
                key_width = self.size * shape.key_heads
                both = functional.linear(_normed(hidden), layer["qkv"])
                query, key, value = both.split([shape.width, key_width, key_width], dim=-1)
                keys[:, :, place] = key.view(batch, shape.key_heads, self.size)
                values[:, :, place] = value.view(batch, shape.key_heads, self.size)
                # Query heads that share a key head are rows of one attention.
                grouped = query.view(batch, shape.key_heads, shape.heads // shape.key_heads, self.size)
                seen = functional.scaled_dot_product_attention(grouped, keys, values)
                hidden = hidden + functional.linear(seen.reshape(batch, shape.width), layer["out"])
                gate, up = functional.linear(_normed(hidden), layer["up"]).chunk(2, dim=-1)
                hidden = hidden + functional.linear(functional.silu(gate) * up, layer["down"])
            self.tokens = functional.linear(_normed(hidden), self.head).argmax(dim=-1)
        tokens: list[int] = self.tokens.tolist()  # waits for the GPU, as an engine does that sends tokens out
        return tokens


def _normed(hidden: Any) -> Any:
    return hidden * (hidden.float().pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt().to(hidden.dtype)


def decoded(decoder: Decoder, seconds: float, emit: modes.Emit | None, number: Callable[[], int]) -> float:
    """Decode for some seconds and return tokens a second."""
    began = time.perf_counter()
    steps = 0
    while time.perf_counter() - began < seconds:
        for row, token in enumerate(decoder.step()):
            if emit is not None:
                emit(modes.TOKEN, number(), f"r{row}", decoder.position, token)
        steps += 1
    return steps * decoder.shape.batch / (time.perf_counter() - began)


def measure(decoder: Decoder, name: str) -> dict[str, Any]:
    """Run one logger between runs without logging."""
    shape = decoder.shape
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.log"
        mode = modes.MODES[name]
        ratios, plain = [], [decoded(decoder, shape.seconds, None, numbers.__next__)]
        with open(path, "w", encoding="utf-8") as stream:
            emit = mode.open(stream)
            for _ in range(shape.repeats):
                rate = decoded(decoder, shape.seconds, emit, numbers.__next__)
                plain.append(decoded(decoder, shape.seconds, None, numbers.__next__))
                ratios.append(2 * rate / (plain[-1] + plain[-2]))
            mode.close()
        received = sinks.counted(path.read_bytes())
    offered = next(numbers)
    return {
        "ratio": statistics.median(ratios), "ratios": ratios, "none_rate": statistics.median(plain),
        "offered": offered, "received": received.records, "doubled": received.doubled, "counts": mode.counts(),
    }  # fmt: skip


def main(*, tiny: bool, out: Path | None) -> None:
    """Measure every logger that is there, and print a table. Says so where torch or a GPU is missing."""
    try:
        import torch
    except ImportError:
        print("not measured: torch is not installed. Nothing is judged.")
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not tiny:
        print("not measured: torch finds no GPU here; `--gpu --tiny` runs a small model on the CPU. Nothing is judged.")
        return
    shape = TINY if tiny else Shape()
    decoder = Decoder(torch, shape, device)
    for _ in range(3):
        decoder.step()
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, batch {shape.batch}, one record a token")
    print(f"{'logger':16} {'tokens/s of none':>16} {'lowest to highest':>18} {'none, tokens/s':>15} {'records':>19}")
    found: dict[str, Any] = {}
    for mode in LOGGERS:
        reason = modes.MODES[mode].missing()
        if reason:
            print(f"{modes.MODES[mode].title:16} skipped: {reason}")
            continue
        row = found[mode] = measure(decoder, mode)
        spread = f"{min(row['ratios']):.2f} to {max(row['ratios']):.2f}"
        records = f"{row['received']} of {row['offered'] if mode != 'none' else 0}"
        print(
            f"{modes.MODES[mode].title:16} {row['ratio']:>16.3f} {spread:>18} {row['none_rate']:>15,.0f} {records:>19}"
        )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        facts = {"device": name, "torch": torch.__version__, "shape": asdict(shape)}
        (out / "gpu.json").write_text(json.dumps({"facts": facts, "rows": found}, indent=1))
