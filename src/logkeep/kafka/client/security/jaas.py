r"""Parses the one entry of `sasl.jaas.config`, strictly; no login module is ever executed.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="…";

A message about an invalid entry never quotes it: it holds a password.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from logkeep.errors import ConfigError

_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    f"{_SECURITY}.plain.PlainLoginModule": ("PLAIN",),
    f"{_SECURITY}.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+)|([=;]))', re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_FLAGS = {"required", "requisite", "sufficient", "optional"}


class Token(NamedTuple):
    """A word, or (`sign`) one of `=` and `;`; a quoted `";"` is a word."""

    text: str
    sign: bool


@dataclass(frozen=True)
class JaasEntry:
    """The mechanisms of the login module, and its options, which are never in a `repr`."""

    module: str
    mechanisms: tuple[str, ...]
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str, subject: str) -> JaasEntry:
    """Parse the entry. Raises `ConfigError` for anything but one complete entry of a supported module."""
    match _tokens(text, subject):
        case [Token(module, False), Token(flag, False), *options, Token(";", True)] if flag.lower() in _FLAGS:
            pass
        case _:
            raise _invalid(subject, "it must be one entry: module, control flag, options, semicolon")
    if module not in _MODULES:
        known = ", ".join(name.rpartition(".")[2] for name in _MODULES)
        raise _invalid(subject, f"the login module {module.rpartition('.')[2]} is not supported (known: {known})")
    if len(options) % 3 or [each.sign for each in options] != [False, True, False] * (len(options) // 3):
        raise _invalid(subject, 'options must be written name="value"')
    if any(each.text != "=" for each in options[1::3]):
        raise _invalid(subject, 'options must be written name="value", and only one entry can be used')
    return JaasEntry(
        module, _MODULES[module], {n.text: v.text for n, v in zip(options[::3], options[2::3], strict=True)}
    )


def _tokens(text: str, subject: str) -> list[Token]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _invalid(subject, f"a quote is missing or misplaced near character {at + 1}")
        quoted, word, sign = match.groups()
        plain = _ESCAPE.sub(_plain, quoted) if quoted is not None else word or sign
        tokens.append(Token(plain, sign is not None))
        at = match.end()
    return tokens


def _plain(escape: re.Match[str]) -> str:
    """The character that Java's tokenizer makes of an escape in a quoted string."""
    found = escape[1]
    return chr(int(found, 8)) if found[0] in "01234567" else _CONTROLS.get(found, found)


def _invalid(subject: str, what: str) -> ConfigError:
    remedy = 'write: org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
    return ConfigError(f"sasl.jaas.config cannot be used, {what}", subject=subject, remedy=remedy)
