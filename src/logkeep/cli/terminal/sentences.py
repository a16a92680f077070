"""Finished English sentences in another language: those of errors and findings, which code far below makes of values.

A catalogue has them with `{}` where the code puts a value: `"no log holds {} to {}"`. A sentence is compared with the
texts between the values, the most specific first, and its values are translated in the same way: they may be parts of
a sentence. What the catalogue lacks stays English; a test collects the sentences of the code and finds what is missing.
"""

import re
from collections.abc import Mapping, Sequence

from logkeep.cli.terminal.escaping import LONGEST

HOLE = "{}"
_COUNTED = re.compile(r"([\d,]+) (\D+)")
_FEWEST_LETTERS = 4
"""A pattern with fewer letters of its own, such as `{} to {}`, is for numbers and for values without spaces only."""
_DEEPEST = 4
"""Sentences in values of sentences. A name in a file can look like many of them."""


class Sentences:
    """Translates by one catalogue. `nouns` are what is counted: `{"file": "{count} 个文件"}`."""

    def __init__(self, catalogue: Mapping[str, str], nouns: Mapping[str, str]) -> None:
        self._whole = {english: other for english, other in catalogue.items() if HOLE not in english}
        self._nouns = nouns
        patterns = [(english.split(HOLE), other) for english, other in catalogue.items() if HOLE in english]
        # The code adds something to a text that ends with a space.
        patterns += [([begin, ""], f"{other}{HOLE}") for begin, other in self._whole.items() if begin.endswith(" ")]
        self._patterns = sorted(patterns, key=lambda each: -_letters(each[0]))

    def __call__(self, text: str) -> str:
        return self._any(text, _DEEPEST) if len(text) <= LONGEST else text

    def _any(self, text: str, depth: int) -> str:
        return self._translated(text, depth) or self._in_parts(text, depth) or text

    def _in_parts(self, text: str, depth: int) -> str | None:
        """Sentences that the code joins: `what (place, place)`, `one; another`, and `where: what`."""
        what, bracket, places = text.removesuffix(")").rpartition(" (")
        if bracket and text.endswith(")") and (other := self._any(what, depth)) != what:
            return f"{other}（{'，'.join(self._translated(place, depth) or place for place in places.split(', '))}）"
        if "; " in text:
            return "；".join(self._translated(part, depth) or part for part in text.split("; "))
        where, colon, what = text.partition(": ")
        return f"{where}: {self._translated(what, depth) or what}" if colon else None

    def _translated(self, text: str, depth: int) -> str | None:
        if text in self._whole:
            return self._whole[text]
        for pieces, other in self._patterns if depth else ():
            values = values_between(pieces, text)
            if values is not None and (_letters(pieces) >= _FEWEST_LETTERS or all(map(_is_short, values))):
                return other.format(*(self._any(value, depth - 1) for value in values))
        return self._counted(text)

    def _counted(self, text: str) -> str | None:
        """`3 nodes`, as the code writes plurals."""
        match = _COUNTED.fullmatch(text)
        if match is None:
            return None
        singular = match[2].removesuffix("s")
        noun = self._nouns.get(match[2]) or self._nouns.get(singular)
        return noun.format(count=match[1]) if noun else None


def values_between(pieces: Sequence[str], text: str) -> list[str] | None:
    """What the text has between these pieces, each at its first place; None if it is made of other pieces."""
    if not text.startswith(pieces[0]):
        return None
    at, values = len(pieces[0]), list[str]()
    for piece in pieces[1:-1]:
        found = text.find(piece, at)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(piece)
    end = len(text) - len(pieces[-1])
    if end < at or not text.endswith(pieces[-1]):
        return None
    return [*values, text[at:end]]


def _is_short(value: str) -> bool:
    return " " not in value or value.startswith("0x")


def _letters(pieces: Sequence[str]) -> int:
    return sum(character.isalpha() for piece in pieces for character in piece)
