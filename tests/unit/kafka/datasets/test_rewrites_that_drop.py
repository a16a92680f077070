"""`--rewrite` of a topic of which the source has less than the dataset: said, asked, and in the result."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import Declined
from logkeep.kafka.datasets.values import ExportableLog
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.model.findings import Finding, Severity
from logkeep.store.memory import MemoryStore
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows

LOG = DatasetLog("o", 0)
FORMS = ("kafka-backup-v1", "avro", "parquet")


def source(log: ExportableLog, **configs: str) -> ListedSource:
    facts = exportable_logs(log)
    topics = tuple(msgspec.structs.replace(topic, configs=configs) for topic in facts.topics)
    return ListedSource(
        type(facts)(facts.cluster_id, facts.live, topics, facts.logs, ()), {LOG: rows(*range(log.start, log.end))}
    )


def begun(form: str, tmp_path: Path, place: str = "directory") -> ListedExports:
    """Offsets 2 to 5."""
    exports = ListedExports(tmp_path / "d" if place == "directory" else MemoryStore(), form)
    exports.run(source(exportable("o", 0, 2, 6)))
    return exports


@pytest.mark.parametrize("place", ["directory", "bucket"])
@pytest.mark.parametrize("form", FORMS)
def test_what_goes_is_in_the_plan_and_in_the_result(form: str, place: str, tmp_path: Path) -> None:
    exports, less = begun(form, tmp_path, place), source(exportable("o", 0, 4, 7))
    dropped = exports.task("o").prepare(less).dropped
    done = exports.run(less, "o")
    assert done.findings == dropped
    assert done.sum("records") == 3
    (finding,) = dropped
    assert (finding.code, finding.severity, finding.where) == ("records-dropped", Severity.WARNING, "o/0")
    assert "records at offsets 2 to 3, which the source has no longer" in finding.what


@pytest.mark.parametrize(
    ("log", "configs", "spans"),
    [
        (exportable("o", 0, 0, 6), {}, []),
        (exportable("o", 0, 2, 9), {}, []),
        (exportable("o", 0, 3, 9), {"cleanup.policy": "compact"}, []),
        (exportable("o", 0, 3, 9, "b" * 32), {}, []),
        (exportable("o", 0, 9, 12), {}, ["2 to 5"]),
        (exportable("o", 0, 6, 6), {}, ["2 to 5"]),
        (exportable("o", 0, 0, 4), {}, ["4 to 5"]),
        (exportable("o", 0, 3, 5), {}, ["2 to 2", "5 to 5"]),
        (exportable("o", 0, 0, 4, ID), {}, ["4 to 5"]),
    ],
    ids=(
        "the source has more",
        "all",
        "compacted",
        "created again",
        "none of it",
        "empty by now",
        "lost its end",
        "both",
        "an older backup",
    ),
)
def test_what_goes(log: ExportableLog, configs: dict[str, str], spans: list[str], tmp_path: Path) -> None:
    found = begun("avro", tmp_path).task("o").prepare(source(log, **configs)).dropped
    assert [f.what.partition("offsets ")[2].partition(",")[0] for f in found] == spans


def test_a_user_who_does_not_agree_keeps_the_dataset(tmp_path: Path) -> None:
    exports = begun("avro", tmp_path)
    asked = list[Finding]()

    def no(dropped: Sequence[Finding]) -> None:
        asked.extend(dropped)
        raise Declined("not confirmed")

    before = {path: path.read_bytes() for path in (tmp_path / "d").rglob("*") if path.is_file()}
    task = exports.task("o")
    task.ask = no
    with pytest.raises(Declined):
        task.run(source(exportable("o", 0, 4, 7)), lambda _: pytest.fail("nothing is copied"))
    assert len(asked) == 1
    assert {path: path.read_bytes() for path in (tmp_path / "d").rglob("*") if path.is_file()} == before
    assert exports.run(source(exportable("o", 0, 2, 7)), "o").findings == ()
