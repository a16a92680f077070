"""Documents between an application and its coordinator, and the tasks that declarations mean."""

import pytest

from logkeep.application.kafka.documents import (
    KnownTask,
    MarkerDocument,
    ParticipantDeclaration,
    ReadPosition,
    TaskCheckpoint,
    key_of,
    known_tasks,
    last_key_of,
    sealed,
    tasks_of,
    unsealed,
)
from logkeep.errors import Damaged

MARKER = MarkerDocument(application="shop", id=5, nonce="n", repository="r")


def declaration(*, together: bool) -> ParticipantDeclaration:
    return ParticipantDeclaration(
        application="shop", group="g", inputs=("a", "b"), outputs=(), transactional=True, together=together
    )


def test_a_document_comes_back() -> None:
    taken = TaskCheckpoint(application="shop", group="g", id=5, forced=True, positions=(ReadPosition("a", 0, 7),))
    assert unsealed(sealed(MARKER), MarkerDocument, "") == MARKER
    assert unsealed(sealed(taken), TaskCheckpoint, "") == taken
    assert (key_of(taken), last_key_of(taken)) == (b"lk/checkpoint/g/a/0/5", b"lk/last/g/a/0")


def test_every_changed_byte_is_found() -> None:
    data = sealed(MARKER)
    for at in range(len(data) - 1):
        with pytest.raises(Damaged):
            unsealed(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :], MarkerDocument, "")


@pytest.mark.parametrize("data", [None, b"", b"{}\n{}\n", b"x" * (2 << 20)])
def test_foreign_and_oversized_values_are_refused(data: bytes | None) -> None:
    with pytest.raises(Damaged):
        unsealed(data, MarkerDocument, "")


def test_tasks_are_logs_or_partitions_of_all_inputs() -> None:
    assert tasks_of([declaration(together=False)], {"a": 2, "b": 1}) == {
        ("g", (("a", 0),)),
        ("g", (("a", 1),)),
        ("g", (("b", 0),)),
    }
    assert tasks_of([declaration(together=True)], {"a": 2, "b": 1}) == {("g", (("a", 0), ("b", 0))), ("g", (("a", 1),))}


def _checkpoint(number: int, topic: str = "a", group: str = "g") -> TaskCheckpoint:
    return TaskCheckpoint(
        application="shop", group=group, id=number, forced=False, positions=(ReadPosition(topic, 0, 7),)
    )


def test_a_task_is_known_by_its_last_record_and_by_what_it_left_for_coordinators() -> None:
    taken = [_checkpoint(5), _checkpoint(6), _checkpoint(3, "b"), _checkpoint(9, group="other")]
    old = [(key_of(each), sealed(each)) for each in taken]
    assert known_tasks(old, "g") == {
        (("a", 0),): KnownTask(6, frozenset({key_of(taken[0]), key_of(taken[1])})),
        (("b", 0),): KnownTask(3, frozenset({key_of(taken[2])})),
    }
    new = _checkpoint(7)
    removed = [(key_of(each), None) for each in taken[:2]]
    last = (last_key_of(new), sealed(new))
    assert known_tasks([*old, *removed, last], "g")[("a", 0),] == KnownTask(7)
    assert known_tasks([*old, last, (b"x", b"damaged")], "g")[("a", 0),] == KnownTask(
        7, frozenset({key_of(taken[0]), key_of(taken[1])})
    )
