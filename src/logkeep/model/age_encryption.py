"""Encryption to public keys in the age format. Only this module imports pyrage.

`age -d -i KEYFILE`, or any other program that knows the format, decrypts the result. Only the holder of the private key
can: Logkeep does not have it.
"""

from collections.abc import Sequence
from typing import Any

from logkeep.errors import UsageError

_INSTALL = "pip install 'logkeep[scram]'"
_PRIVATE = "AGE-SECRET-KEY-"


def check_recipients(texts: Sequence[str]) -> None:
    """Raises UsageError unless every text is an age public key (`age1…`); never repeats a private key."""
    _recipients(texts)


def encrypted_to(texts: Sequence[str], plain: bytes) -> str:
    """Encrypt bytes to the holders of any of these keys, as ASCII text. Raises UsageError."""
    recipients = _recipients(texts)
    if not recipients:
        raise UsageError("no recipient is given", remedy="give the public key of a recipient, age1…")
    encrypted: bytes = _library().encrypt(plain, recipients, armored=True)
    return encrypted.decode("ascii")


def _recipients(texts: Sequence[str]) -> list[Any]:
    library = _library()
    return [_recipient(library, text) for text in texts]


def _recipient(library: Any, text: str) -> Any:
    if text.strip().upper().startswith(_PRIVATE):
        raise UsageError(
            "this is a private key; others may have read it in the command line",
            remedy="create a new key pair with `age-keygen` and give its public key, age1…",
        )
    try:
        return library.x25519.Recipient.from_str(text)
    except library.RecipientError as error:
        raise UsageError(
            f"{text!r} is not an age public key", remedy="give a key as `age-keygen` prints it: age1…"
        ) from error


def _library() -> Any:
    try:
        import pyrage  # noqa: PLC0415  an optional package
    except ImportError:
        raise UsageError("encryption needs the Python package pyrage", remedy=_INSTALL) from None
    return pyrage
