"""What is sealed is opened by its recipients and by nobody else; what is no public key is refused unrepeated."""

import pyrage
import pytest

from logkeep.errors import UsageError
from logkeep.model.age_encryption import check_recipients, encrypted_to


def test_each_recipient_opens_it_and_nobody_else() -> None:
    first, second, stranger = (pyrage.x25519.Identity.generate() for _ in range(3))
    sealed = encrypted_to([str(first.to_public()), str(second.to_public())], b"the secret")
    assert sealed.startswith("-----BEGIN AGE ENCRYPTED FILE-----")
    for key in (first, second):
        assert pyrage.decrypt(sealed.encode(), [key]) == b"the secret"
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(sealed.encode(), [stranger])


def test_nobody_is_nobody() -> None:
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
