"""`kafka show` on an archive made by hand: which records, in which order, how they are shown, what is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from logkeep.repository.chain.commits import read_chain
from tests.support.cli.in_process import Here
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.kafka.compacted_backups import CompactedSource, source_with_a_gap
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.whole_backups import new_place


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Three partitions with ten records each, an aborted one, one with headers; a second backup with one more."""
    root = tmp_path_factory.mktemp("show")
    made = CompactedSource(new_place(root / "repo"), partitions=3)
    for number in range(30):
        made.time_ms = 1_700_000_000_000 + 1000 * number
        made.write([(b"k%d" % number, b'{"n": %d}' % number)], number % 3)
    made.transaction([(b"k1", b"aborted")], 7, False, 1)
    base = made.ends[0]
    headers = ((b"trace", b"abc"), (b"trace", None), (b"\xff", b"\x00"))
    made.logs[0].append(batch_of(base, [Slow(0, 0, None, b"\x00\x01\xff", headers)], base_time_ms=-1, max_time_ms=-1))
    made.ends[0] += 1
    made.back_up()
    made.time_ms += 1000
    made.write([(b"k7", b"later")], 1)
    made.back_up()
    return Here(root)


def offsets(found: dict[str, Any]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in found["records"]]


def test_records_come_by_partition_and_offset_and_the_rest_is_announced(here: Here) -> None:
    found = here.json("kafka", "show", "state", "--limit", "12")
    assert offsets(found) == [*((0, n) for n in range(11)), (1, 0)]
    assert found["more"]
    assert here.json("kafka", "show", "state")["more"] is False


def test_one_offset_is_shown_with_all_of_its_fields(here: Here) -> None:
    (row,) = here.json("kafka", "show", "state:0:10")["records"]
    assert row["timestamp_ms"] == -1
    assert row["key"] is None
    assert (row["value"]["form"], row["value"]["text"], row["value"]["bytes"]) == ("hex", "0001ff", 3)
    assert [(h["name"], h["value"] and h["value"]["text"]) for h in row["headers"]] == [
        ("trace", "abc"), ("trace", None), ("ff", "00"),
    ]  # fmt: skip
    text = here.run("kafka", "show", "state:0:10").stdout
    assert "value      0x0001ff  (hex, 3 bytes)" in text


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("state:1:10", "it belongs to a transaction that was not committed; --isolation all shows it"),
        ("state:1:11", "compaction removed it, it was deleted at the source, or it is a transaction marker; "
                       "the next record is at offset 12"),
        ("state:0:999", "the backup has offsets 0 to 10 of this partition"),
        ("state:0:9223372036854775807", "the backup has offsets 0 to 10 of this partition"),
    ],
)  # fmt: skip
def test_an_offset_without_a_record_is_explained(here: Here, where: str, why: str) -> None:
    found = here.json("kafka", "show", where)
    assert not found["records"]
    assert found["notes"] == [f"there is no record to show at offset {where.rpartition(':')[2]}: {why}"]


def test_last_is_by_time_over_all_partitions(here: Here) -> None:
    assert offsets(here.json("kafka", "show", "state", "--last", "3")) == [(1, 9), (2, 9), (1, 12)]
    assert offsets(here.json("kafka", "show", "state:2", "--last", "2")) == [(2, 8), (2, 9)]


def test_the_last_records_of_a_partition_have_no_hole_whatever_their_times_are(here: Here, tmp_path: Path) -> None:
    assert offsets(here.json("kafka", "show", "state:0", "--last", "2")) == [(0, 9), (0, 10)], "10 has no time"
    times = (50_000, 60_000, 10_000, -1)
    write_partition(tmp_path, "t", 0, {0: [HandRecord(n, b"k", b"v", time) for n, time in enumerate(times)]})
    write_partition(tmp_path, "t", 1, {0: [HandRecord(n, b"k", b"v", time) for n, time in enumerate((55_000, 58_000))]})
    there = ("--from", str(tmp_path))
    assert offsets(here.json("kafka", "show", "t:0", "--last", "2", *there)) == [(0, 2), (0, 3)]
    assert offsets(here.json("kafka", "show", "t", "--last", "4", *there)) == [(1, 1), (0, 1), (0, 2), (0, 3)]


def test_a_key_is_looked_for_in_the_partition_of_its_hash_first(here: Here) -> None:
    found = here.json("kafka", "show", "state", "--key", "k7")
    assert offsets(found) == [(1, 2), (1, 12)]
    assert found["searched"] == [1]
    assert "searched partition 1 alone, to which Kafka's default partitioner assigns this key" in found["notes"][0]
    elsewhere = here.json("kafka", "show", "state", "--key", "hex:6b30")
    assert offsets(elsewhere) == [(0, 0)]
    assert elsewhere["searched"] == [2, 0, 1]
    assert elsewhere["notes"] == [
        "no matching record with this key is in partition 2, to which Kafka's default partitioner assigns it: "
        "the others were searched too"
    ]
    early = here.json("kafka", "show", "state", "--key", "k7", "--until", "2023-11-14T22:13:21Z")
    assert (early["records"], early["searched"]) == ([], [1, 0, 2]), "the partition has the key, at another time"
    assert early["notes"][0].startswith("no matching record with this key is in partition 1, to which")
    assert offsets(here.json("kafka", "show", "state:1", "--key", "base64:azc=")) == [(1, 2), (1, 12)]


def test_texts_headers_and_times_select_records(here: Here) -> None:
    assert offsets(here.json("kafka", "show", "state", "--contains", '"n": 17')) == [(2, 5)]
    assert offsets(here.json("kafka", "show", "state", "--contains", "hex:01ff")) == [(0, 10)]
    assert offsets(here.json("kafka", "show", "state", "--contains", "k29")) == [(2, 9)]
    assert offsets(here.json("kafka", "show", "state", "--header", "trace")) == [(0, 10)]
    assert offsets(here.json("kafka", "show", "state", "--header", "trace=abc")) == [(0, 10)]
    assert offsets(here.json("kafka", "show", "state", "--header", "trace=ab")) == []
    window = ("--since", "2023-11-14T22:13:25Z", "--until", "2023-11-14T22:13:27Z")
    assert offsets(here.json("kafka", "show", "state", *window)) == [(0, 2), (2, 1)]
    assert offsets(here.json("kafka", "show", "state:1:4", "--limit", "2")) == [(1, 4), (1, 5)]
    assert (1, 10) in offsets(here.json("kafka", "show", "state", "--isolation", "all"))


def test_an_earlier_backup_has_what_it_had(here: Here) -> None:
    first = here.json("list")["backups"][0]["id"]
    assert offsets(here.json("kafka", "show", "state:1", str(first), "--last", "1")) == [(1, 9)]


def test_what_cannot_be_decoded_is_said_in_its_row(here: Here) -> None:
    (row,) = here.json("kafka", "show", "state:0:10", "--decode", "json")["records"]
    assert row["value"]["problem"] == "it is not JSON"
    (row,) = here.json("kafka", "show", "state:2:0", "--decode", "json")["records"]
    assert row["value"]["json"] == {"n": 2}
    (row,) = here.json("kafka", "show", "state:2:0", "--decode", "avro")["records"]
    assert row["value"]["problem"] == "it does not begin with the id of a schema"
    assert "(it is not JSON) k2" in here.run("kafka", "show", "state:2", "--decode", "json").stdout


def test_a_directory_with_schemas_decodes_too(here: Here, tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "1.avsc").write_text(json.dumps("null"))
    (row,) = here.json("kafka", "show", "state:0:10", "--schema-dir", str(schemas))["records"]
    assert row["value"]["form"] == "hex", "three bytes name no schema"
    assert here.error("kafka", "show", "state", "--schema-dir", str(tmp_path), code=40)["message"].startswith(
        "no file in it is named after a schema id"
    )


def test_records_of_a_dataset_are_shown_in_the_same_way(here: Here, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    for number in (0, 1):
        made = [HandRecord(10 * number + n, b"k%d" % n, b"v%d" % n, 1000 * n + number) for n in range(5)]
        write_partition(root, "t", number, {made[0].offset: made[:2], made[2].offset: made[2:]})
    there = ("--from", str(root))
    assert offsets(here.json("kafka", "show", "t", *there)) == [
        *((0, n) for n in range(5)),
        *((1, 10 + n) for n in range(5)),
    ]
    assert offsets(here.json("kafka", "show", "t:1:12", *there)) == [(1, 12)]
    assert here.json("kafka", "show", "t:1:99", *there)["notes"] == [
        "there is no record to show at offset 99: the dataset has none there"
    ]
    assert offsets(here.json("kafka", "show", "t:1:12", "--limit", "2", *there)) == [(1, 12), (1, 13)]
    for more in ((), ("--limit", "2")):
        assert offsets(here.json("kafka", "show", "t:1:9223372036854775807", *more, *there)) == []
    assert offsets(here.json("kafka", "show", "t", "--last", "3", *there)) == [(1, 13), (0, 4), (1, 14)]
    keyed = here.json("kafka", "show", "t", "--key", "k3", *there)
    assert (offsets(keyed), keyed["searched"]) == ([(0, 3)], [0])
    assert "assigns this key if the topic has 2 partitions; `logkeep kafka show t:PARTITION`" in keyed["notes"][0]
    assert offsets(here.json("kafka", "show", "t:1", "--key", "k3", *there)) == [(1, 13)]
    assert offsets(here.json("kafka", "show", "t", "--contains", "v2", "--limit", "1", *there)) == [(0, 2)]
    window = ("--since", "1970-01-01T00:00:01Z", "--until", "1970-01-01T00:00:02Z")
    assert offsets(here.json("kafka", "show", "t", *window, *there)) == [(0, 1), (1, 11)]
    assert "10 records of t, dataset of " in here.run("kafka", "show", "t", *there).stdout
    assert here.error("kafka", "show", "tt", *there, code=40)["message"] == "there is no topic 'tt' in the dataset"
    assert here.error("kafka", "show", "t:7", *there, code=40)["message"] == "t has no partition 7 in the dataset"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("state:x",), "'state:x' names no records"),
        (("state:0:9223372036854775808",), "9223372036854775808 is no offset"),
        (("state:0:" + "9" * 30, "--from", "repo"), "9" * 30 + " is no offset"),
        (("stat",), "there is no topic 'stat' in the backup"),
        (("state:9",), "state has no partition 9 in the backup"),
        (("state", "--last", "2", "--limit", "3"), "--last and --limit exclude each other"),
        (("state:0:1", "--last", "2"), "--last and an offset exclude each other"),
        (("state", "--since", "2026-11-14T03:00:00Z", "--until", "2026-11-14T02:00:00Z"),
         "--until is not after --since: no record has such a time"),
        (("state", "1", "--from", "repo"), "--from names a dataset, which has no backups"),
        (("state", "--key", "hex:zz"), "'hex:zz' has other characters than its form allows"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(here: Here, words: tuple[str, ...], message: str) -> None:
    assert here.error("kafka", "show", *words, code=40)["message"] == message


def test_offsets_that_were_lost_are_noted_where_they_would_be_shown(tmp_path: Path) -> None:
    first = read_chain(source_with_a_gap(tmp_path / "repo").place).completed[0].id
    here = Here(tmp_path)
    note = "offsets 2 to 6 of partition 1 were lost before they could be archived: retention removed it"
    assert note in here.run("kafka", "show", "state").stdout
    shown = {
        words: here.json("kafka", "show", *words.split())["notes"]
        for words in (
            *("state", "state:0", "state:1:7 --limit 9", "state --limit 4", "state --limit 5"),
            *("state:1 --last 2", "state:1 --last 3", f"state:1 {first}"),
        )
    }
    assert [words for words, notes in shown.items() if notes == [note]] == [
        *("state", "state --limit 5", "state:1 --last 3")
    ]
    assert [words for words, notes in shown.items() if notes not in ([], [note])] == []
