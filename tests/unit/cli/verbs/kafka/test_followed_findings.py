"""What the end of `--follow` says of all its rounds, and what a dry run says of the run that would follow."""

from pathlib import Path

import pytest

from logkeep.cli.verbs.kafka.datasets.followed_export import RoundFindings
from logkeep.cli.verbs.kafka.datasets.report import dataset_code, dataset_report, plan_report
from logkeep.errors import TargetUnsafe
from logkeep.kafka.datasets.run import NOT_HELD, REMOVED
from logkeep.kafka.record.dataset_document import DatasetLog
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

LOG = DatasetLog("o", 0)


def deleted(*offsets: int) -> ListedSource:
    return ListedSource(exportable_logs(exportable("o", 0, 0, offsets[-1] + 1)), {LOG: rows(*offsets, value=None)})


def test_the_counts_of_all_rounds_and_what_happened_in_one_are_told_at_the_end(tmp_path: Path) -> None:
    """The last round has nothing new: without the others the run ended with 0."""
    exports, found = ListedExports(tmp_path / "d", "avro", segment_bytes=1, schema="seed001"), RoundFindings()
    found.add(exports.run(deleted(0, 1, 2)))
    for path in sorted((tmp_path / "d").rglob("*.data"))[1:]:
        path.unlink()
    for source in (deleted(0, 1, 2, 3), deleted(0, 1, 2, 3)):
        found.add(exports.run(source))
    counted, removed = found.all()
    assert (counted.code, counted.where, counted.what.partition(":")[0]) == (NOT_HELD, "o", "6 records")
    assert (removed.code, removed.where) == (REMOVED, "o/0")
    assert found.all() == found.all()


def test_findings_that_last_are_those_of_the_last_round(tmp_path: Path) -> None:
    exports, found = ListedExports(tmp_path / "d", "avro"), RoundFindings()
    for count in range(1, 4):
        found.add(exports.run(ListedSource(exportable_logs(exportable("o", 0, 0, count)), {LOG: rows(*range(count))})))
    assert found.all() == ()


def test_a_dry_run_names_the_gaps_and_findings_of_the_run(tmp_path: Path) -> None:
    """A run that failed had passed lost offsets; files of another log were deleted."""
    exports, other = ListedExports(tmp_path / "d", "avro", segment_bytes=1), DatasetLog("p", 0)
    logs, records = (exportable("o", 0, 5, 8), exportable("p", 0, 0, 2)), {LOG: rows(5, 6, 7), other: rows(0, 1)}
    exports.add(exportable("o", 0, 0, 3), 0, 1, 2)
    exports.add(logs[1], 0, 1)
    sorted((tmp_path / "d" / "topics" / "p").rglob("*.data"))[-1].unlink()
    with pytest.raises(TargetUnsafe):
        exports.run(ListedSource(exportable_logs(logs[0]), records, {LOG: (7, TargetUnsafe("x"))}))
    source = ListedSource(exportable_logs(*logs), records)
    dry = plan_report(exports.task().prepare(source), "d", allow_gaps=False)
    done = dataset_report(exports.run(source), "d", allow_gaps=False)
    assert (dry.gaps, dry.findings) == (done.gaps, done.findings)
    assert (len(dry.gaps), [each.code for each in dry.findings]) == (1, [REMOVED])
    assert dataset_code(dry) == dataset_code(done) == 21
