"""When a lease is free, held, expired, or of a process that is dead."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from logkeep.repository.chain.lease import NOTHING_SEEN, LeaseDocument, LeaseState, lease_state
from logkeep.repository.chain.owner import is_dead, this_process

HERE = this_process("me")


def lease(**changes: object) -> LeaseDocument:
    owner = msgspec.structs.replace(HERE, host="elsewhere", run="other")
    document = LeaseDocument(
        repository="r", source="s", owner=owner, operation="backup", epoch=1,
        acquired="2026-11-15T10:00:00.000Z", expires="2026-11-15T10:05:00.000Z", head=NOTHING_SEEN,
    )  # fmt: skip
    return msgspec.structs.replace(document, **changes)


@pytest.mark.parametrize(
    ("document", "minute", "expected"),
    [
        (lease(), 4.9, LeaseState.HELD),
        (lease(), 6.5, LeaseState.HELD),
        (lease(), 6.8, LeaseState.EXPIRED),
        (lease(released=True), 1, LeaseState.FREE),
        (lease(owner=HERE), 1, LeaseState.HELD),
        (lease(owner=msgspec.structs.replace(HERE, born="1")), 1, LeaseState.OWNER_DEAD),
    ],
)
def test_the_standing_of_a_lease(document: LeaseDocument, minute: float, expected: LeaseState) -> None:
    now = datetime(2026, 11, 15, 10, tzinfo=UTC) + timedelta(minutes=minute)
    assert lease_state(document, now, HERE) is expected


@pytest.mark.parametrize("field", ["host", "boot", "namespace"])
def test_a_missing_process_elsewhere_proves_nothing(field: str) -> None:
    dead = msgspec.structs.replace(HERE, pid=2**22 - 1, born="1")
    assert is_dead(dead, HERE)
    assert not is_dead(msgspec.structs.replace(dead, **{field: "other"}), HERE)
    assert not is_dead(msgspec.structs.replace(dead, boot=""), msgspec.structs.replace(HERE, boot=""))
