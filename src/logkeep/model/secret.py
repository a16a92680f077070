"""A secret as a value that cannot show itself.

Text, format, JSON and pickle of a `Secret` never hold what it guards: only `reveal()` gives the plain value, so every
use can be found by searching for that word. Making a `Secret` also puts its value on the list that `redact` removes
from logs and messages: nobody has to remember to register it.
"""

import base64
import json
from typing import NoReturn
from urllib.parse import quote

HIDDEN = "***"
_SHORTEST = 4
"""Replacing one- to three-letter values everywhere would destroy messages and hide nothing worth hiding."""

_spellings: set[str] = set()


class Secret:
    """Guards one value. Two secrets are equal only when they are the same object: comparing leaks."""

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
        # A pickled secret would travel through Spark and lie in its event logs and spill files.
        raise TypeError("a Secret is not pickled; let the worker read it from its file or environment")


def known_spellings() -> list[str]:
    """Every form in which a known secret could be written, longest first so that no part of one is left over."""
    return sorted(_spellings, key=len, reverse=True)


def _spelled(value: str) -> set[str]:
    lines = {line for line in value.splitlines() if len(line) >= _SHORTEST * 2}
    escaped = json.dumps(value)[1:-1]
    return {value, quote(value, safe=""), escaped, repr(value)[1:-1], base64.b64encode(value.encode()).decode(), *lines}
