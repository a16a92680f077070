"""A secret value that never appears in text.

Text, format, JSON and pickle of a `Secret` never contain the value: only `reveal()` returns it, so every use can be
found by searching for that word. Making a `Secret` also registers its value with `redact`, which removes it from logs
and messages.
"""

import base64
import json
from typing import NoReturn
from urllib.parse import quote

HIDDEN = "***"
_SHORTEST = 4
"""Replacing values of one to three letters would make messages unreadable."""

_spellings: set[str] = set()


class Secret:
    """One value. Two secrets are equal only if they are the same object: comparing values leaks."""

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value
        if len(value) >= _SHORTEST:
            _spellings.update(_spelled(value))

    def reveal(self) -> str:
        """The plain value, for the one call that needs it."""
        return self.__value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __reduce__(self) -> NoReturn:
        # A pickled secret would be in Spark's event logs and spill files.
        raise TypeError("a Secret cannot be pickled; let the worker read it from its file or environment")


def known_spellings() -> list[str]:
    """Every spelling of a known secret, longest first so that no part of one remains."""
    return sorted(_spellings, key=len, reverse=True)


def _spelled(value: str) -> set[str]:
    lines = {line for line in value.splitlines() if len(line) >= _SHORTEST * 2}
    escaped = json.dumps(value)[1:-1]
    return {value, quote(value, safe=""), escaped, repr(value)[1:-1], base64.b64encode(value.encode()).decode(), *lines}
