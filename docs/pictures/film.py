"""A terminal's lines as an animated SVG: no script, only CSS, so that it plays inside a page. Pure.

Without animation (a printer, a reader who prefers no motion) it shows the last picture.
"""

from collections.abc import Iterable
from itertools import groupby
from xml.sax.saxutils import escape

from docs.pictures.svg import element, picture
from docs.pictures.svg import text as words
from docs.pictures.terminal import LineVersion

_SIZE, _CELL, _LINE, _EDGE, _BAR = 13.0, 7.9, 18.0, 16.0, 34.0
_HOLD_S = 6.0
"""How long the last picture is shown before it begins again."""
_MONO = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', Consolas, 'Liberation Mono', monospace"
_STYLE = (
    f"text{{font-family:{_MONO};font-size:{_SIZE}px;fill:#d1d7e0;white-space:pre}}"
    ".bold{font-weight:700}.dim{fill:#848d97}.green{fill:#57ab5a}.red{fill:#e5534b}.yellow{fill:#c69026}"
    ".typed{fill:#ffffff;font-weight:700}.name{fill:#848d97;text-anchor:middle}"
    "@media (prefers-reduced-motion:reduce){*{animation:none!important}}"
)


def film(title: str, versions: Iterable[LineVersion], columns: int, rows: int) -> str:
    """`rows` lines are visible; the picture scrolls when there are more."""
    shown = sorted(versions, key=lambda each: (each.seen_s, each.gone_s or 0.0, each.row))
    length_s = max(each.seen_s for each in shown) + _HOLD_S
    rules, groups = [], []
    for number, (span, lines) in enumerate(groupby(shown, key=lambda each: (each.seen_s, each.gone_s))):
        rules.append(_appear(f"v{number}", *span, length_s))
        groups.append(element("g", "".join(map(_drawn, lines)), class_=f"v{number}"))
    rules.append(_scroll(shown, rows, length_s))
    width, height = columns * _CELL + 2 * _EDGE, rows * _LINE + _BAR + _EDGE
    inside = element("rect", x=0, y=_BAR, width=width, height=rows * _LINE + 1)
    scene = element("g", element("g", "\n".join(groups), class_="scroll"), clip_path="url(#window)")
    content = [element("clipPath", inside, id="window"), *_frame(title, width, height), scene]
    return picture(width, height, title, content, _STYLE + "".join(rules))


def _frame(title: str, width: float, height: float) -> list[str]:
    dots = (("#e5534b", 18), ("#c69026", 36), ("#57ab5a", 54))
    return [
        element("rect", width=width, height=height, rx=8, fill="#1c2128"),
        *(element("circle", cx=x, cy=17, r=5, fill=colour) for colour, x in dots),
        words(title, width / 2, 21, class_="name"),
    ]


def _drawn(version: LineVersion) -> str:
    spans = "".join(
        element("tspan", escape(run), class_=style) if style else escape(run) for run, style in version.runs
    )
    return element("text", spans, x=_EDGE, y=_BAR + (version.row + 1) * _LINE - 5) if spans else ""


def _appear(name: str, seen_s: float, gone_s: float | None, length_s: float) -> str:
    """Hidden, then visible; what is gone at the end is hidden without animation too."""
    steps = [f"0%{{visibility:hidden}}{_percent(seen_s, length_s)}{{visibility:visible}}"]
    if gone_s is not None:
        steps.append(f"{_percent(gone_s, length_s)}{{visibility:hidden}}")
    hidden = "visibility:hidden;" if gone_s is not None else ""
    return f"@keyframes {name}{{{''.join(steps)}}}.{name}{{{hidden}animation:{name} {length_s:.2f}s step-end infinite}}"


def _scroll(shown: list[LineVersion], rows: int, length_s: float) -> str:
    """The picture moves up by one line for each line that does not fit."""
    steps, lowest, moved = ["0%{transform:translateY(0)}"], 0, 0
    for version in shown:
        lowest = max(lowest, version.row + 1)
        if lowest - rows > moved:
            moved = lowest - rows
            steps.append(f"{_percent(version.seen_s, length_s)}{{transform:translateY({-moved * _LINE:g}px)}}")
    still = f"transform:translateY({-moved * _LINE:g}px)"
    return f"@keyframes scroll{{{''.join(steps)}}}.scroll{{{still};animation:scroll {length_s:.2f}s step-end infinite}}"


def _percent(moment_s: float, length_s: float) -> str:
    return f"{100 * moment_s / length_s:.3f}%"
