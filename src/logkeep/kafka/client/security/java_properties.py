r"""Parses Java properties files as Java does.

Natural lines join when they end with an odd number of backslashes; `#` and `!` start comments; key and value are
separated by `=`, `:` or white space; `\t \n \r \f \uXXXX` and `\` before any other character are escapes. The last
value of a repeated key wins.
"""

import re
from collections.abc import Iterator

from logkeep.errors import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(u)|(.)|$)", re.DOTALL)


def parse_properties(text: str, subject: str) -> dict[str, str]:
    """All keys and values. Raises `ConfigError` for an invalid escape; its message holds no value."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        found[_unescape(key, subject, number)] = _unescape(value, subject, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Joined lines without leading blanks, with the number of their first one."""
    joined, first = "", 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = natural.lstrip(_BLANK)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined += line[:-1]
            continue
        yield first, joined + line
        joined, first = "", 0
    if joined:
        yield first, joined


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str, subject: str, number: int) -> str:
    def plain(match: re.Match[str]) -> str:
        code, broken, other = match.groups()
        if broken:
            raise ConfigError(f"line {number}: \\u needs four hex digits", subject=subject, remedy="correct the escape")
        if code:
            return chr(int(code, 16))
        return _ESCAPES.get(other or "", other or "")

    return _ESCAPE.sub(plain, text)
