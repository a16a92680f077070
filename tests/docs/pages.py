"""Reading pages as a user does: which commands stand there, in which order, and what they are said to print.

```console             `$ ` begins a command, `> ` continues it, other lines are what it prints (none: not compared);
                       `…` stands for any text, alone on a line for any lines
```console exits=60    the last command of the block ends with this code
```console not-run     shown, not run here; the tests count these
```sh                  to be pasted as a whole
```text printed        a part of what the block before it prints, `…` as above
<!-- scene: NAME -->   something happens that readers do not do themselves, see `scenes`
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUIET_FENCES = {"yaml", "json", "text", "python"}
"""Fences that hold no commands."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S)
_SCENE = re.compile(r"^<!-- scene: (?P<scene>[a-z-]+) -->$", re.M)
_LINK = re.compile(r"\[[^\]]*\]\((?P<to>[^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    info: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    """One thing to type, where it stands, and what is expected of it."""

    text: str
    line: int
    output: tuple[str, ...] | None = None
    code: int = 0


@dataclass(frozen=True)
class Scene:
    name: str
    line: int


def own_files() -> list[Path]:
    """Every file of the repository. Directories with a dot are tools' own and hold hundreds of thousands."""
    found: list[Path] = []
    for directory, below, names in os.walk(ROOT):
        below[:] = [name for name in below if not name.startswith(".") and name != "__pycache__"]
        found += [Path(directory, name) for name in names]
    return sorted(found)


def fences(page: str) -> list[Fence]:
    return [Fence(m["info"].strip(), _flush(m), page.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(page)]


def _flush(fence: re.Match[str]) -> str:
    """The body of a fence, without the indent that it has inside a list."""
    return "".join(line.removeprefix(fence["indent"]) for line in fence["body"].splitlines(keepends=True))


def prose(page: str) -> str:
    """A page without its fences and code spans."""
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page))


def links(page: str) -> list[str]:
    return [m["to"] for m in _LINK.finditer(prose(page))]


def steps(page: str) -> list[Command | Scene]:
    """Everything that happens on a page, in order."""
    happening: list[Command | Scene] = [
        Scene(m["scene"], page.count("\n", 0, m.start()) + 1) for m in _SCENE.finditer(page)
    ]
    for fence, next_fence in pairwise([*fences(page), Fence("", "", 0)]):
        words = fence.info.split()
        if words[:1] == ["console"] and "not-run" not in words:
            happening += _commands(fence, _exit_code(words))
        elif words == ["sh"]:
            happening.append(Command(fence.body, fence.line, _part(next_fence)))
    return sorted(happening, key=lambda step: step.line)


def _part(fence: Fence) -> tuple[str, ...] | None:
    """The output that a block of its own shows, with anything around it."""
    return ("…", *fence.body.splitlines(), "…") if fence.info.split() == ["text", "printed"] else None


def not_run(page: str) -> int:
    """How many commands a page shows and does not run."""
    return sum(f.body.count("\n$ ") + f.body.startswith("$ ") for f in fences(page) if "not-run" in f.info.split())


def _exit_code(words: list[str]) -> int:
    return next((int(w.removeprefix("exits=")) for w in words if w.startswith("exits=")), 0)


def _commands(fence: Fence, last_code: int) -> Iterator[Command]:
    blocks: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate(fence.body.splitlines(), fence.line + 1):
        if line.startswith("$ "):
            blocks.append((number, [line[2:]], []))
        elif not blocks:
            raise ValueError(f"line {number}: output before the first command")
        elif line.startswith("> ") and not blocks[-1][2]:
            blocks[-1][1].append(line[2:])
        else:
            blocks[-1][2].append(line)
    for place, (number, text, output) in enumerate(blocks, 1):
        yield Command("\n".join(text), number, tuple(output) or None, last_code if place == len(blocks) else 0)


def _line_pattern(line: str) -> str:
    """Several blanks beside a placeholder fit any number of them: columns stay aligned on the page."""
    pieces = re.split(r"((?: {2,})?…(?: {2,})?)", line.rstrip())
    literal, between = map(re.escape, pieces[::2]), map(_placeholder, pieces[1::2])
    return "".join(text for pair in zip_longest(literal, between, fillvalue="") for text in pair) + r"[ ]*\n"


def _placeholder(found: str) -> str:
    return f"{'[ ]+' if found[0] == ' ' else ''}[^\n]*?{'[ ]+' if found[-1] == ' ' else ''}"


def fits(expected: tuple[str, ...], printed: str) -> bool:
    """Whether an output is the one that the page shows."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += _line_pattern(line)
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None
