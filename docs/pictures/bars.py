"""Bar charts: groups of horizontal bars, each with its name and its number. Pure: values in, SVG out."""

from collections.abc import Sequence
from dataclasses import dataclass

from docs.pictures.svg import SANS, element, picture, text

_WIDTH, _NAMES, _NUMBERS, _EDGE = 820.0, 350.0, 60.0, 20.0
_BAR, _PITCH, _GROUP = 16.0, 23.0, 34.0
_TOP = 62.0
_STYLE = (
    f"text{{font-family:{SANS};font-size:13px;fill:#1f2328}}"
    ".title{font-size:16px;font-weight:600}.note{fill:#59636e;font-size:12px}.group{font-weight:600}"
    ".ours{fill:#0969da}.other{fill:#afb8c1}.limit{fill:#d8dee4}.strong{font-weight:600}"
)


@dataclass(frozen=True)
class Bar:
    name: str
    number: float
    kind: str
    """`ours`, `other`, or `limit`: what the machine allows at most."""


@dataclass(frozen=True)
class BarGroup:
    name: str
    bars: tuple[Bar, ...]


def bar_chart(title: str, note: str, groups: Sequence[BarGroup]) -> str:
    """All bars have one scale, so that groups can be compared."""
    longest = max(bar.number for group in groups for bar in group.bars)
    scale = (_WIDTH - _NAMES - _NUMBERS - _EDGE) / longest
    content, y = [], _TOP
    for group in groups:
        content.append(text(group.name, _EDGE, y + _BAR, class_="group"))
        y += _GROUP - 8
        for bar in group.bars:
            content += _bar(bar, y, scale)
            y += _PITCH
        y += _GROUP - _PITCH
    height = y + _EDGE / 2
    card = element("rect", x=0.5, y=0.5, width=_WIDTH - 1, height=height - 1, rx=8, fill="#ffffff", stroke="#d1d9e0")
    heading = [text(title, _EDGE, 30, class_="title"), text(note, _EDGE, 49, class_="note")]
    return picture(_WIDTH, height, f"{title}. {note}", [card, *heading, *content], _STYLE)


def _bar(bar: Bar, y: float, scale: float) -> list[str]:
    middle = y + _BAR * 0.78
    strong = " strong" if bar.kind == "ours" else ""
    length = max(bar.number * scale, 1.5)
    return [
        text(bar.name, _NAMES - 12, middle, class_=f"name{strong}", text_anchor="end"),
        element("rect", class_=bar.kind, x=_NAMES, y=y, width=length, height=_BAR, rx=2),
        text(f"{bar.number:,.0f}", _NAMES + length + 8, middle, class_=f"number{strong}"),
    ]
