"""Secrets encrypted to somebody's public key, in the age format: the only door to pyrage.

What is sealed here is opened by `age -d -i KEYFILE`, or by any other program that knows the format, and by nobody who
does not hold the private key: we do not either.
"""

from collections.abc import Sequence
from typing import Any

from logkeep.errors import UsageError

_INSTALL = "pip install 'logkeep[scram]'"
_PRIVATE = "AGE-SECRET-KEY-"


def check_recipients(texts: Sequence[str]) -> None:
    """Raises UsageError unless every text is an age public key (`age1…`); a private one is never repeated."""
    _recipients(texts)


def sealed_to(texts: Sequence[str], plain: bytes) -> str:
    """The plain bytes for the holders of any of these keys, as ASCII text. Raises UsageError."""
    recipients = _recipients(texts)
    if not recipients:
        raise UsageError("nobody is named who could open it", remedy="give the public key of a recipient, age1…")
    sealed: bytes = _library().encrypt(plain, recipients, armored=True)
    return sealed.decode("ascii")


def _recipients(texts: Sequence[str]) -> list[Any]:
    library = _library()
    return [_recipient(library, text) for text in texts]


def _recipient(library: Any, text: str) -> Any:
    if text.strip().upper().startswith(_PRIVATE):
        raise UsageError(
            "this is a private key, and it was typed where others can read it",
            remedy="make a new pair with `age-keygen`, and give its public key, age1…",
        )
    try:
        return library.x25519.Recipient.from_str(text)
    except library.RecipientError as error:
        raise UsageError(
            f"{text!r} is not an age public key", remedy="give one as `age-keygen` prints it: age1…"
        ) from error


def _library() -> Any:
    try:
        import pyrage  # noqa: PLC0415  an optional package
    except ImportError:
        raise UsageError("encryption needs the Python package pyrage", remedy=_INSTALL) from None
    return pyrage
