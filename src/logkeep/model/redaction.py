"""Removes secrets from text before it is printed or logged.

It removes the values of all `Secret`s of this process, and text that looks like a credential (AWS keys, `password=…`,
JAAS lines, Authorization headers, user information in URLs); in doubt it hides too much. Pure apart from the list of
known values.
"""

import re
from collections.abc import Mapping
from functools import partial

from logkeep.model.secret import HIDDEN, Secret, known_spellings

_WORD = (
    r"(?:password|passwd|passphrase|secret|credential|(?:api|access|account|private)[_.-]?key"
    r"|(?:session|access|refresh|bearer|auth|sas|security)[_.-]?token)[\w.-]{0,100}"
)
"""Repeats are bounded, and nothing before the word is matched: a name of a megabyte must not take minutes."""
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A JAAS line contains user and password in any quoting: hide all of it.
    (re.compile(r"(?i)(sasl\.jaas\.config\W{1,4})[^\n]+"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"(?i)((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|digest|negotiate|aws4-hmac-sha256)\s+)?)[^\s\"',][^\"'\n]*"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b((?:basic|bearer)\s+)[A-Za-z0-9+/_.~-]{8,}=*"), rf"\1{HIDDEN}"),
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/\s@\"']+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
    (
        re.compile(
            r"(?i)([?&](?:sig|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature)=)[^&\s\"']+"
        ),
        rf"\1{HIDDEN}",
    ),
    # The quotes stay, so that JSON stays JSON.
    (re.compile(rf"(?i)({_WORD}(?:\\?[\"'])?\s*[:=]\s*)(\\?[\"'])(?:(?!\2).)+\2"), rf"\1\2{HIDDEN}\2"),
    (re.compile(rf"(?i)({_WORD}[\"']?\s*[:=]\s*)[^\s\"',;&)}}\]\\]+"), rf"\1{HIDDEN}"),
)
_NOT_SECRET = re.compile(r"(?i)(?:_|-)(?:file|command|path|location)[\"']?\s*[:=]\s*$")


def redact(text: str) -> str:
    """The text without known secrets and without what looks like one."""
    for spelling in known_spellings():
        text = text.replace(spelling, HIDDEN)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(partial(_hide, replacement), text)
    return text


def redact_values(value: object) -> object:
    """The same for nested lists and mappings; the whole value of a key that names a credential is hidden."""
    if isinstance(value, Secret):
        return HIDDEN
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode(errors="replace"))
    if isinstance(value, Mapping):
        return {key: redact_values(inner) if not names_credential(str(key)) else HIDDEN for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redact_values(inner) for inner in value]
    return value if isinstance(value, (int, float)) or value is None else redact(str(value))


def names_credential(key: str) -> bool:
    """Whether a key names a credential: its value must not be shown or passed to Spark's configuration."""
    named = re.fullmatch(rf"(?i)[\w.-]*{_WORD}|(?:proxy-)?authorization|sasl\.jaas\.config", key)
    return named is not None and not _NOT_SECRET.search(f"{key}=")


def _hide(replacement: str, found: re.Match[str]) -> str:
    # `password_file=/path` names a file; the user needs to see the path.
    if found.re.groups and _NOT_SECRET.search(found.group(1)):
        return found.group(0)
    return found.expand(replacement)
