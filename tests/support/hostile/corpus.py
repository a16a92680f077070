"""The hostile strings, and what must never be found in an output."""

import re
import unicodedata
from typing import Final

FORGED: Final = "FORGED-LINE"
"""Follows each newline of the corpus: no line of an output may begin with it."""
STRINGS: Final = (
    "\x1b[2K\r\x1b[1A\x1b]0;owned\x07",  # erase the line, go up, set the title
    "\x1b]52;c;ZXZpbA==\x07",  # OSC 52: the clipboard
    "\x1b[31mPAINTED",  # a colour of ours that we did not write
    "\r\x1b[KERASED",  # the sequence that removes our own progress line
    "\x9b2J\x85\x90",  # the 8-bit forms
    "\u202eevil\u2066\u2069\u200f\u200b\ufeff\u00ad",  # bidi controls and other characters without a shape
    "\U000e0041",  # a tag character, outside the first plane
    f"\u2028{FORGED}\u2029",
    f"\n{FORGED}\n2026-11-18T00:00:00.000000Z info    {FORGED} [logkeep]\r\n{FORGED}",
    "\x00\x7f\b\t\v\f",
)
TEXT: Final = "".join(STRINGS)
SURROGATE: Final = "\udcff\ud800"
"""What Python makes of a file name that is not UTF-8, and the half of a pair."""
LONG: Final = "N" * 1_000_000

_WHOLE: Final = LONG[:4_500]
"""A long name that was not shortened. JSON has values as they are."""
_OURS: Final = re.compile(r"\r\x1b\[K|\x1b\[(?:0|1|2|31|32|33)m")
_COUNTERFEITS: Final = ("\x1b[31mPAINTED", "\r\x1b[KERASED")
LONGEST_OUTPUT: Final = 150_000
"""Characters of one command: names of a megabyte are shortened."""


def problems(output: str, *, terminal: bool = False) -> list[str]:
    """What is in this output and must not be."""
    found = [f"{FORGED} begins a line"] if re.search(rf"(?m)^\W*{FORGED}", output) else []
    found += [f"counterfeit {text!r}" for text in _COUNTERFEITS if text in output]
    found += [f"{len(output)} characters"] if len(output) > LONGEST_OUTPUT else []
    found += ["a long name, whole"] if _WHOLE in output and not output.startswith("{") else []
    rest = _OURS.sub("", output) if terminal else output
    raw = {c for c in rest if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    return found + [f"raw {c!r}" for c in sorted(raw)]
