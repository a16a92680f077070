"""Sealed documents: bytes become the very document, or Damaged, or FormatTooNew. Nothing else, whatever the bytes."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import AlreadyExists, Damaged, FormatTooNew
from logkeep.repository.chain.actions import Commit, HoldAction
from logkeep.repository.chain.documents import open_in_place, put_own, seal, seal_of, unseal
from logkeep.repository.chain.fold import Checkpoint
from logkeep.store.memory import MemoryStore

COMMIT = Commit(
    repository="r",
    source="prod",
    generation=7,
    previous="p",
    run="run",
    nonce="n",
    time="t",
    action=HoldAction(3, "why"),
)
GOLDEN = (
    b'{"type":"commit","version":1,"repository":"r","source":"prod","generation":7,"previous":"p","run":"run",'
    b'"nonce":"n","time":"t","action":{"kind":"hold","id":3,"reason":"why"}}\n'
    b'{"sha256":"%s"}\n'
)


def resealed(line: bytes) -> bytes:
    return line + b'{"sha256":"' + hashlib.sha256(line).hexdigest().encode() + b'"}\n'


def test_the_bytes_of_a_document_are_these() -> None:
    line = GOLDEN.split(b"\n", maxsplit=1)[0] + b"\n"
    assert seal(COMMIT) == GOLDEN % hashlib.sha256(line).hexdigest().encode()
    assert seal_of(seal(COMMIT)) == hashlib.sha256(line).hexdigest()


def test_what_was_sealed_opens() -> None:
    assert unseal(seal(COMMIT), Commit, "x") == COMMIT


@given(st.data())
def test_no_changed_byte_goes_unnoticed(data: st.DataObject) -> None:
    whole = seal(COMMIT)
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damaged):
        unseal(bytes(broken), Commit, "x")


@given(st.integers(0, 400))
def test_no_cut_goes_unnoticed(length: int) -> None:
    whole = seal(COMMIT)
    with pytest.raises(Damaged):
        unseal(whole[: min(length, len(whole) - 1)], Commit, "x")


@given(st.binary(max_size=300))
def test_any_bytes_are_a_document_or_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        unseal(data, Commit, "x")
    with pytest.raises((Damaged, FormatTooNew)):
        unseal(resealed(data.replace(b"\n", b" ") + b"\n"), Commit, "x")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"version": Commit.newest + 1}, FormatTooNew),
        ({"surprise": 1}, Damaged),
        ({"generation": -1}, Damaged),
        ({"generation": "7"}, Damaged),
        ({"action": {"kind": "hold", "id": 0, "reason": ""}}, Damaged),
        ({"action": {"kind": "explode"}}, Damaged),
        (
            {"action": {"kind": "backup", "id": 1, "manifest": {"token": "../../x", "size": 1, "sha256": "0" * 64}}},
            Damaged,
        ),
        ({"type": "lease"}, Damaged),
    ],
)
def test_strictness(change: dict[str, object], error: type[Exception]) -> None:
    fields = json.loads(seal(COMMIT).split(b"\n")[0])
    line = json.dumps({**fields, **change}).encode() + b"\n"
    with pytest.raises(error):
        unseal(resealed(line), Commit, "x")


def test_a_deeply_nested_document_is_damage_and_not_a_crash() -> None:
    line = b'{"type":"commit","version":1,"action":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    with pytest.raises(Damaged):
        unseal(resealed(line), Commit, "x")


def test_another_type_or_repository_does_not_open() -> None:
    with pytest.raises(Damaged, match="instead of a"):
        unseal(seal(COMMIT), Checkpoint, "x")
    with pytest.raises(Damaged, match="another repository"):
        open_in_place(seal(COMMIT), "x", Commit, "other")


def test_put_own_recognises_its_own_bytes_and_no_others() -> None:
    store = MemoryStore()
    put_own(store, "a", b"mine")
    put_own(store, "a", b"mine")
    with pytest.raises(AlreadyExists):
        put_own(store, "a", b"others")
    with pytest.raises(AlreadyExists):
        put_own(store, "a", b"m")
