"""What a finding says of one log: the normal end of a log that is being written is told from a loss."""

import io

import pytest

from logkeep.formats.zookeeper.txnlog import ScannedLog, scan
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.timeline.log_check import good_runs, log_findings, lost_of
from tests.support.zookeeper.encoding import log_of, set_data
from tests.support.zookeeper.handmade_history import kept_log

RECORDS = [set_data(zxid) for zxid in range(5, 15)]


def scanned(content: bytes) -> ScannedLog:
    return scan(io.BytesIO(content), most_bytes=len(content), deep=True)


def test_the_torn_end_of_the_newest_log_is_no_loss() -> None:
    torn = scanned(log_of(RECORDS)[:-20])
    (seen,) = log_findings("log.5", torn, newest=True)
    assert (seen.kind, seen.severity, seen.zxid) == (Class.ACTIVE_TAIL, Severity.NOTE, 13)
    assert seen.position == torn.size_bytes
    assert seen.lost is None


@pytest.mark.parametrize(
    ("next_first", "severity", "lost"),
    (
        (14, Severity.NOTE, None),
        (20, Severity.DAMAGE, (14, 19)),
        ((1 << 32) + 1, Severity.NOTE, None),
        ((1 << 32) + 2, Severity.DAMAGE, None),
    ),
)
def test_the_torn_end_of_a_closed_log_is_one_unless_the_next_goes_on_there(
    next_first: int, severity: Severity, lost: tuple[int, int] | None
) -> None:
    (seen,) = log_findings("log.5", scanned(log_of(RECORDS)[:-20]), newest=False, next_first=next_first)
    assert (seen.kind, seen.severity, seen.lost) == (Class.TORN_LOG, severity, lost)


def test_an_empty_log_between_two_that_fit_lost_nothing() -> None:
    (fits,) = log_findings("log.f", scanned(b""), newest=False, before=14, next_first=15)
    assert fits.severity is Severity.NOTE
    (gone,) = log_findings("log.f", scanned(b""), newest=False, before=14, next_first=21)
    assert (gone.severity, gone.lost) == (Severity.DAMAGE, (15, 20))


def test_a_log_without_records_is_told() -> None:
    (seen,) = log_findings("log.f", scanned(log_of([])), newest=True)
    assert (seen.kind, seen.severity) == (Class.LOG_EMPTY, Severity.NOTE)


def test_a_header_of_another_kind_holds_no_information() -> None:
    (seen,) = log_findings("log.5", scanned(b"X" * 16 + log_of(RECORDS)[16:]), newest=False)
    assert seen.kind is Class.LOG_HEADER
    assert "writes it again" in seen.remedy


def test_damage_is_told_with_its_place_and_what_is_lost() -> None:
    content = bytearray(log_of(RECORDS))
    content[16 + 2 * len(RECORDS[0]) + 30] ^= 1
    found = scanned(bytes(content))
    (seen,) = log_findings("log.5", found, newest=False)
    assert (seen.kind, seen.position, seen.zxid, seen.lost) == (Class.LOG_DAMAGED, 16 + 2 * len(RECORDS[0]), 6, (7, 7))
    assert good_runs(found) == [(5, 6), (8, 14)]
    assert list(lost_of(kept_log(log_of(RECORDS), "a"), good_runs(found))) == [(7, 7)]
