"""The public Python API: its names, and its tables in pyarrow, pandas, polars and DuckDB."""

import inspect
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import logkeep
from logkeep import python_api
from logkeep.errors import UnknownBackup, UsageError
from logkeep.kafka.scan import read
from logkeep.kafka.scan.values import ScanCounters
from logkeep.repository.backups.holds import reader_holds
from logkeep.repository.chain.commits import SourceRef, read_chain
from tests.support.kafka.compacted_backups import CompactedSource, source_with_a_gap
from tests.support.kafka.whole_backups import new_place

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> SourceRef:
    made = CompactedSource(new_place(tmp_path_factory.mktemp("api") / "repo"), partitions=2)
    for number in range(20):
        made.time_ms = START_MS + 1000 * number
        made.write([(b"k%d" % number, b"v%d" % number)], number % 2)
    made.transaction([(b"t", b"aborted")], 7, False, 1)
    made.back_up()
    made.write([(b"k", None)], 0)
    made.back_up()
    return made.place


def test_the_exported_names_are_these_and_have_these_parameters() -> None:
    """A name that is here stays: programs of users call it."""
    assert logkeep.__all__ == ["__version__", "open"]
    public = {
        "logkeep.open": logkeep.open,
        **{
            f"{kind.__name__}.{name}": getattr(kind, name)
            for kind in (
                python_api.BackupRepository,
                python_api.ArchivedBackup,
                python_api.ArchivedTopic,
                python_api.TopicScan,
            )
            for name in vars(kind)
            if not name.startswith("_") or name == "__arrow_c_stream__"
        },
    }
    shown = {name: list(inspect.signature(what).parameters) if callable(what) else [] for name, what in public.items()}
    assert shown == {
        "logkeep.open": ["url", "source"],
        "BackupRepository.source": [],
        "BackupRepository.backups": ["self"],
        "BackupRepository.backup": ["self", "which"],
        "BackupRepository.close": ["self"],
        "ArchivedBackup.id": [],
        "ArchivedBackup.topics": ["self"],
        "ArchivedBackup.topic": ["self", "name"],
        "ArchivedTopic.scan": ["self", "partitions", "offsets", "since", "until", "columns", "isolation"],
        "TopicScan.schema": [],
        "TopicScan.gaps": [],
        "TopicScan.to_batches": ["self"],
        "TopicScan.to_arrow": ["self"],
        "TopicScan.__arrow_c_stream__": ["self", "requested_schema"],
    }


def test_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, logkeep; print(sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'pyarrow', 'msgspec'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_pyarrow_pandas_polars_and_duckdb_read_the_same_table(place: SourceRef) -> None:
    with logkeep.open(place.store.url) as repository:
        records = repository.backup("latest").topic("state").scan()
        table = records.to_arrow()
        assert table.schema.equals(records.schema)
        assert table.column_names == list(python_api.COLUMNS)
        assert table.num_rows == 21
        assert pa.table(records).equals(table)
        assert pl.DataFrame(records).height == 21
        assert list(table.to_pandas()["value"][-2:]) == [b"v17", b"v19"]
        query = 'SELECT count(*), count("value"), max("offset") FROM records WHERE partition = 0'
        for _ in range(2):
            found = duckdb.sql(query)
            assert found is not None
            assert found.fetchall() == [(11, 10, 10)]


def test_a_scan_is_narrow_lazy_and_can_be_read_again(place: SourceRef, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = ScanCounters()
    monkeypatch.setattr(read, "ScanCounters", lambda: counters)
    with logkeep.open(place.store.url) as repository:
        topic = repository.backup().topic("state")
        assert topic.partitions == (0, 1)
        moment = datetime.fromtimestamp(START_MS / 1000, UTC)
        some = topic.scan(
            partitions=[1], offsets={1: (2, 9)}, since=moment + timedelta(seconds=9), until=START_MS + 16_000,
            columns=["offset", "partition", "value"],
        )  # fmt: skip
        streams = [some.__arrow_c_stream__() for _ in range(3)]
        assert counters == ScanCounters(), "three streams were opened, as DuckDB does, and nothing was read"
        del streams
        expected = {"offset": [4, 5, 6, 7], "partition": [1] * 4, "value": [b"v9", b"v11", b"v13", b"v15"]}
        assert [some.to_arrow().to_pydict() for _ in range(2)] == [expected] * 2
        assert sum(b.num_rows for b in some.to_batches()) == 4
        assert topic.scan(isolation="all").to_arrow().num_rows == 22
        assert topic.scan(columns=["partition"]).to_arrow().to_pydict() == {"partition": [0] * 11 + [1] * 10}


def test_a_backup_is_held_until_the_repository_is_closed(place: SourceRef) -> None:
    first, second = (entry.id for entry in read_chain(place).completed)
    with logkeep.open(place.store.url, source="prod") as repository:
        assert repository.backups() == [first, second]
        earlier, latest = repository.backup(first), repository.backup(datetime.now(UTC))
        assert (earlier.id, latest.id, latest.topics()) == (first, second, ["state"])
        assert {hold.backup for hold in reader_holds(place)} == {first, second}
        records = earlier.topic("state").scan()
        assert records.to_arrow().num_rows == 20
    assert not reader_holds(place)
    with pytest.raises(UsageError, match="the repository is closed"):
        records.to_arrow()


def test_mistakes_are_refused_before_anything_is_read(place: SourceRef, tmp_path: Path) -> None:
    with logkeep.open(place.store.url) as repository:
        backup = repository.backup()
        with pytest.raises(UsageError, match="no topic 'states'"):
            backup.topic("states")
        topic = backup.topic("state")
        with pytest.raises(UsageError, match="no partition 5"):
            topic.scan(partitions=[5])
        with pytest.raises(UsageError, match="no column 'vaule'"):
            topic.scan(columns=["vaule"])
        with pytest.raises(UsageError, match="no column is named"):
            topic.scan(columns=[])
        for wrong in ({5: (0, 10)}, {0: (5, 3)}):
            with pytest.raises(UsageError, match="no range of partition"):
                topic.scan(offsets=wrong)
        for one in ({"columns": "key"}, {"partitions": 0}, {"offsets": {0: 5}}):
            with pytest.raises(UsageError, match=r"not one name|not one number|a number where") as caught:
                topic.scan(**one)
            assert "pass " in caught.value.remedy
        with pytest.raises(UsageError, match="no isolation 'read_committed'"):
            topic.scan(isolation="read_committed")
        with pytest.raises(UsageError, match="no time zone"):
            topic.scan(since=datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake
        with pytest.raises(UsageError, match="'yesterday' is not a time") as caught:
            topic.scan(since="yesterday")  # type: ignore[arg-type]
        assert "pass an aware datetime" in caught.value.remedy
        with pytest.raises(UnknownBackup):
            repository.backup(5)


def test_what_a_notebook_shows_is_short(place: SourceRef) -> None:
    with logkeep.open(place.store.url) as repository:
        backup = repository.backup()
        topic = backup.topic("state")
        assert repr(repository) == f"BackupRepository(url={place.store.url!r}, source={place.source!r})"
        assert (repr(backup), repr(topic), repr(topic.scan(columns=["key"]))) == (
            f"ArchivedBackup(id={backup.id})",
            "ArchivedTopic(name='state', partitions=(0, 1))",
            "TopicScan(columns=('key',))",
        )


def test_a_part_of_a_millisecond_counts_as_a_whole_one() -> None:
    """A record at 0 ms is before 0.4 ms: `until` includes it and `since` does not."""
    assert python_api._milliseconds(datetime(1970, 1, 1, 0, 0, 0, 400, tzinfo=UTC)) == 1
    assert python_api._milliseconds(datetime(1970, 1, 1, 0, 0, 0, 2000, tzinfo=UTC)) == 2
    assert python_api._milliseconds(datetime(1969, 12, 31, 23, 59, 59, 999_600, tzinfo=UTC)) == 0


def test_offsets_that_were_lost_are_warned_of_and_listed(tmp_path: Path) -> None:
    made = source_with_a_gap(tmp_path / "repo")
    with logkeep.open(made.place.store.url) as repository:
        topic = repository.backup("latest").topic("state")
        with pytest.warns(python_api.LostOffsetsWarning, match=r"state/1: offsets 2 to 6 were lost .*: retention"):
            found = topic.scan()
        assert found.gaps == (python_api.LostOffsets(1, 2, 7, "retention removed it"),)
        assert found.to_arrow().select(["partition", "offset"]).to_pydict() == {
            "partition": [0, 0, 1, 1, 1, 1],
            "offset": [0, 1, 0, 1, 7, 8],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert topic.scan(partitions=[0]).gaps == topic.scan(offsets={1: (7, 9)}).gaps == ()
            assert repository.backup(repository.backups()[0]).topic("state").scan().gaps == ()
