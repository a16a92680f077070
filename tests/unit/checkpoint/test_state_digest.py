"""The digest of a state does not depend on the order of writes, and shows every change."""

import random

from logkeep.checkpoint import state_digest


def test_writes_one_by_one_and_the_last_ones_have_the_same_digest() -> None:
    chance, state, digest = random.Random(7), dict[str, bytes](), state_digest.EMPTY
    for _ in range(500):
        key = f"k{chance.randrange(20)}"
        new = None if chance.random() < 0.3 else chance.randbytes(chance.randrange(4))
        digest = state_digest.changed(digest, key, state.get(key), new)
        if new is None:
            state.pop(key, None)
        else:
            state[key] = new
    assert digest == state_digest.digest_of(state.items())
    for key in list(state):
        digest = state_digest.changed(digest, key, state.pop(key), None)
    assert state_digest.as_text(digest) == "0" * 64


def test_keys_and_values_cannot_be_exchanged() -> None:
    one = state_digest.digest_of([("ab", b"c")])
    assert one != state_digest.digest_of([("a", b"bc")])
    assert one != state_digest.digest_of([("ab", b"c"), ("", b"")])
