"""Only the recipients can decrypt; what is not a public key is refused, and a private key is not repeated."""

import pyrage
import pytest

from logkeep.errors import UsageError
from logkeep.model.age_encryption import check_recipients, encrypted_to


def test_each_recipient_decrypts_it_and_no_other_key_does() -> None:
    first, second, stranger = (pyrage.x25519.Identity.generate() for _ in range(3))
    encrypted = encrypted_to([str(first.to_public()), str(second.to_public())], b"the secret")
    assert encrypted.startswith("-----BEGIN AGE ENCRYPTED FILE-----")
    for key in (first, second):
        assert pyrage.decrypt(encrypted.encode(), [key]) == b"the secret"
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(encrypted.encode(), [stranger])


def test_without_recipients_it_is_refused() -> None:
    with pytest.raises(UsageError):
        encrypted_to([], b"the secret")


def test_a_private_key_is_not_repeated() -> None:
    key = str(pyrage.x25519.Identity.generate())
    for text in (key, key.lower(), f" {key}"):
        with pytest.raises(UsageError) as raised:
            check_recipients([text])
        assert key[20:] not in str(raised.value)
        assert key[20:].lower() not in str(raised.value)
    with pytest.raises(UsageError, match="age1oops"):
        check_recipients(["age1oops"])
