"""Bar charts as SVG, without any library: one file that every browser and code host shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10
from pathlib import Path

ROW, BAR, LABEL, CHART, VALUE, TOP, GAP = 24, 15, 280, 420, 100, 64, 58
INK, QUIET, GRID, OURS, OTHERS = "#1f2933", "#6b7785", "#e4e8ec", "#0f8b6d", "#8fa3b8"


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its length, the words at its end and whether it is our own."""

    label: str
    value: float | None
    text: str
    ours: bool = False


@dataclass(frozen=True)
class Panel:
    """Bars on one axis; a logarithmic one where values differ by orders of magnitude."""

    title: str
    bars: Sequence[Bar]
    logarithmic: bool = False


def write(path: Path, title: str, subtitle: str, panels: Sequence[Panel]) -> None:
    """Draw the panels below each other."""
    height = TOP + sum(GAP + ROW * len(panel.bars) + 12 for panel in panels) + 12
    width = LABEL + CHART + VALUE + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>',
        _text(20, 30, title, size=18, weight="600"),
        # About 115 characters of size 12 fit.
        _text(20, 50, subtitle, size=12 if len(subtitle) <= 115 else 10, colour=QUIET),
    ]
    top = TOP
    for panel in panels:
        parts += _panel(panel, top)
        top += GAP + ROW * len(panel.bars) + 12
    parts.append("</svg>")
    path.write_text("\n".join(parts), encoding="utf-8")


def _panel(panel: Panel, top: int) -> list[str]:
    values = [bar.value for bar in panel.bars if bar.value]
    largest, smallest = max(values, default=1.0), min(values, default=1.0)
    floor = 10 ** (int(log10(smallest)) - (1 if smallest < 1 else 0)) if panel.logarithmic else 0.0

    def length(value: float) -> float:
        if panel.logarithmic:
            return CHART * max(0.004, log10(value / floor) / max(log10(largest / floor), 1e-9))
        return CHART * max(0.004, value / largest)

    parts = [_text(20, top + 20, panel.title, weight="600")]
    bottom = top + GAP + ROW * len(panel.bars) - 4
    if panel.logarithmic:
        tick = floor
        while tick <= largest:
            x = LABEL + (length(tick) if tick > floor else 0)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + GAP - 10}" y2="{bottom}" stroke="{GRID}"/>')
            parts.append(_text(x, top + GAP - 13, f"{tick:,g}", size=10, colour=QUIET, anchor="middle"))
            tick *= 10
    for number, bar in enumerate(panel.bars):
        y = top + GAP + ROW * number
        weight = "600" if bar.ours else "400"
        parts.append(_text(LABEL - 10, y + 8, bar.label, anchor="end", weight=weight))
        if bar.value is None:
            parts.append(_text(LABEL + 6, y + 8, bar.text, colour=QUIET, size=11))
            continue
        colour = OURS if bar.ours else OTHERS
        parts.append(
            f'<rect x="{LABEL}" y="{y - 4}" width="{length(bar.value):.1f}" height="{BAR}" rx="3" fill="{colour}"/>'
        )
        parts.append(_text(LABEL + length(bar.value) + 7, y + 8, bar.text, size=12, weight=weight))
    return parts


def _text(
    x: float, y: float, words: str, *, size: int = 13, weight: str = "400", colour: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
