"""What Zeebe's answers about a backup mean."""

from datetime import UTC, datetime

import pytest

from logkeep.checkpoint.zeebe.take.management import (
    BackupStatus,
    BrokerClock,
    LivePartition,
    Management,
    PartitionStatus,
)
from logkeep.checkpoint.zeebe.take.rules import (
    BeforeRequest,
    Seen,
    TakeStage,
    clock_of,
    judge,
    latest_in,
    moment_of,
    next_number,
    other_history,
    without_result,
)
from logkeep.errors import UsageError

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def status(
    state: str, *partitions: str, created: str = "2026-11-18T12:00:01.123456789Z", position: int = 90
) -> BackupStatus:
    details = [
        PartitionStatus(partition_id=n, state=each, created_at=created, checkpoint_position=position)
        for n, each in enumerate(partitions, 1)
    ]
    return BackupStatus(backup_id=20, state=state, details=tuple(details))


def test_an_unknown_or_incomplete_backup_is_not_there_yet() -> None:
    assert judge(None).stage is TakeStage.NOT_YET
    assert judge(status("INCOMPLETE", "DOES_NOT_EXIST", "DOES_NOT_EXIST")).stage is TakeStage.NOT_YET
    assert judge(status("INCOMPLETE", "COMPLETED", "DOES_NOT_EXIST")) == Seen(
        TakeStage.IN_PROGRESS, 1, 2, "Zeebe says INCOMPLETE"
    )


def test_a_failure_names_its_partitions() -> None:
    found = judge(status("FAILED", "COMPLETED", "FAILED"))
    assert (found.stage, found.done, found.reason) == (TakeStage.FAILED, 1, "partition 2: FAILED")


def test_an_id_of_which_nothing_was_ever_stored_is_lost() -> None:
    assert "id 20 is lost" in without_result(20, Seen(TakeStage.NOT_YET), 120, "")
    assert "1 of 3 partitions are completed" in without_result(20, Seen(TakeStage.IN_PROGRESS, 1, 3), 120, "")


def test_the_latest_id_is_read_from_a_refusal() -> None:
    message = "Requested backup has id 5. The latest backup has id 10. Id of new backups must be higher"
    assert latest_in(message) == 10
    assert latest_in("no number") is None
    assert next_number(NOON, (99_999_999_999_999_999,)) == 100_000_000_000_000_000
    assert next_number(NOON, ()) == 20261118120000


def test_a_backup_from_before_its_request_is_of_another_history() -> None:
    before = BeforeRequest(NOON)
    after = {1: LivePartition(processed_position=138)}
    assert other_history(status("COMPLETED", "COMPLETED"), before, after) == ()
    (reason,) = other_history(status("COMPLETED", "COMPLETED", created="2026-11-18T11:00:00Z"), before, after)
    assert "before it was asked for" in reason
    (reason,) = other_history(status("COMPLETED", "COMPLETED", position=139), before, after)
    assert "has processed 138" in reason


def test_clocks_of_brokers_have_nine_decimals() -> None:
    assert moment_of("2026-11-18T12:00:00.123456789Z") == datetime(2026, 11, 18, 12, 0, 0, 123456, tzinfo=UTC)
    assert moment_of("yesterday") is None
    found = {1: LivePartition(clock=BrokerClock("2026-11-18T12:00:00Z")), 2: LivePartition(clock=BrokerClock(None))}
    assert clock_of(found) == NOON
    assert clock_of({}) is None


@pytest.mark.parametrize("url", ["zeebe:9600", "ftp://zeebe", "http://user:secret@zeebe:9600", "http://zeebe/other"])
def test_an_address_that_is_no_management_port_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        Management(url)
    assert "secret" not in str(raised.value)


def test_the_usual_port_is_added() -> None:
    assert Management("http://zeebe/actuator").url == "http://zeebe:9600"
