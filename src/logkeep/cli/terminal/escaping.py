"""Values from outside as text that controls no terminal and begins no line: escaped, and shortened where very long.

A name, path or message may come from a repository, a broker, a server or a directory that another user writes. Escaped
are the characters that `printable_text` names. Escaping twice changes nothing.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeVar

import msgspec

from logkeep.model.printable_text import printable

T = TypeVar("T")

LONGEST: Final = 4096
"""Characters of one value that are shown: no path of Linux is longer. `--json` has all of it."""
LONGEST_CELL: Final = 256
"""Of a cell of a table: every other row is padded to the longest."""
LONGEST_QUESTION: Final = 1000
"""A longer question would push its own beginning off the screen."""
_COLOURS: Final = re.compile(r"(\x1b\[(?:0|1|2|31|32|33)m)")
"""The sequences that `TerminalStyle.paint` writes."""


def shown(text: str, longest: int = LONGEST) -> str:
    """`printable`, and shortened: a name of a megabyte does not fill the screen."""
    safe = printable(text[: longest + 1])
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"


def shown_values(value: T) -> T:
    """The same report with every text in it `shown`: what is made of it has no newlines but those of its maker."""
    found: Any = value
    if isinstance(value, str) and not isinstance(value, Enum):
        found = shown(value)
    elif isinstance(value, PurePath):
        found = type(value)(shown(str(value)))
    elif isinstance(value, Mapping):
        found = {shown_values(key): shown_values(inner) for key, inner in value.items()}
    elif isinstance(value, list | tuple | set | frozenset):
        inner = [shown_values(each) for each in value]
        found = type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    elif isinstance(value, msgspec.Struct):
        found = msgspec.structs.replace(value, **_changed(value, value.__struct_fields__))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        found = dataclasses.replace(value, **_changed(value, fields))
    return found  # type: ignore[no-any-return]  # of the same type, field by field


def _changed(value: object, fields: Iterable[str]) -> dict[str, Any]:
    """A field that the class names in `several_lines` has newlines of ours."""
    lines = getattr(value, "several_lines", ())
    return {
        name: _each_line(getattr(value, name), shown) if name in lines else shown_values(getattr(value, name))
        for name in fields
    }


def _each_line(text: str, change: Callable[[str], str]) -> str:
    return "\n".join(map(change, text.split("\n")))


def without_controls(text: str, *, colour: bool) -> str:
    """Finished text of several lines: newlines stay, and the sequences of `paint` where the stream has colours.

    The last guard before a stream. What is made of values is escaped before it gets here.
    """
    if text.replace("\n", "").isprintable():
        return text
    parts = _COLOURS.split(text) if colour else [text]
    return "".join(part if place % 2 else _each_line(part, printable) for place, part in enumerate(parts))
