"""Judges a cut by what its records say: each has a text that names its cause, the group that made it, and a number.

`c7` is a client's record; `c7>charging0` is the first record that group `charging` made of it. Inside are the kept
records of every log and those that a restore appends. A group has read what lies before its position. The judge knows
no headers and no ids.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

Log = tuple[str, int]


@dataclass(frozen=True)
class JudgedLog:
    kept: Sequence[tuple[int, str]]
    """Offsets and texts."""
    appended: Sequence[str]
    read_to: Mapping[str, int]
    """By group."""


@dataclass(frozen=True)
class Judged:
    logs: Sequence[JudgedLog]
    makes: Callable[[str, str], Collection[str]]
    """What a group makes of a text."""

    def lost(self) -> list[str]:
        """What a group made of a record that it had read, and what is not inside."""
        there = self._texts()
        return [text for made in self._made_of_read() for text in made if text not in there]

    def twice(self) -> list[str]:
        return [text for text, count in self._texts().items() if count > 1]

    def orphans(self) -> list[str]:
        """Records inside that a group made of one that it had not read, or that is not inside."""
        explained = {text for made in self._made_of_read() for text in made}
        return [text for text in self._texts() if ">" in text and text not in explained]

    def missing(self, texts: Collection[str]) -> list[str]:
        there = self._texts()
        return [text for text in texts if text not in there]

    def _texts(self) -> Counter[str]:
        return Counter(text for log in self.logs for text in (*(t for _, t in log.kept), *log.appended))

    def _made_of_read(self) -> list[Collection[str]]:
        return [
            self.makes(group, text)
            for log in self.logs
            for group, position in log.read_to.items()
            for offset, text in log.kept
            if offset < position
        ]
