"""Text on one line, without characters that control a terminal.

Escaped are the Unicode categories Cc (control), Cf (format, with all bidi controls), Zl and Zp (line and paragraph
separators) and Cs (lone surrogates), in the spelling of Python: `\\x1b`, `\\u202e`.
"""

import unicodedata
from typing import Final

CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that are never printed as they are."""


def printable(text: str) -> str:
    """One line without control characters."""
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in CONTROLS else c for c in text)


def safe_json(document: str) -> str:
    """The JSON document with such characters as `\\uXXXX`: the same values, and nothing that controls a terminal."""
    if document.isascii():
        return document
    return "".join(_json_escape(c) if c > "~" and unicodedata.category(c) in CONTROLS else c for c in document)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
