"""Values in printed commands, quoted for a shell: a user copies the command, and it means the value and nothing else.

A value with characters that a terminal does not show (a newline, an escape sequence) is written as `$'…'`, which bash,
zsh and ksh read: the command stays one line, and still names the right file.
"""

import os
import shlex
import unicodedata
from typing import Final

from logkeep.model.printable_text import CONTROLS

_ESCAPED: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def shell_word(value: object) -> str:
    """One argument of a command."""
    text = str(value)
    if not any(unicodedata.category(c) in CONTROLS for c in text):
        return shlex.quote(text)
    return f"$'{''.join(map(_escape, text))}'"


def shell_line(*words: object) -> str:
    """A whole command."""
    return " ".join(map(shell_word, words))


def _escape(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if unicodedata.category(character) not in CONTROLS:
        return character
    # Octal has at most three digits; `\x1b` followed by a letter from a to f would be read as another character.
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
