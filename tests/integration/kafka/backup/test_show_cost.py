"""What `kafka show` of one offset reads from the store, counted where every byte passes: the whole command."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.kafka.scan.find import FoundRecords, RecordQuestion, find_records
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.search import RecordSearch
from logkeep.kafka.scan.values import ScanCounters
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import ZSTD_FRAMES, StoreFacts, require_feature
from logkeep.store.access import open_store
from logkeep.store.base import Store
from tests.support.kafka.large_archives import TOPIC, back_up_large
from tests.support.kafka.whole_backups import new_place
from tests.support.metered_store import MeteredStore
from tests.support.servers.s3 import seaweed

FEW_BYTES = 2_000_000


def bucket(directory: Path) -> Iterator[Store]:
    with seaweed(directory) as server:
        server.make_bucket("records")
        yield open_store(server.url("records", "repo"))


def asked(place: SourceRef, question: RecordQuestion) -> tuple[FoundRecords, int]:
    """What was found, and how many bytes came from the store, with chain, manifest and indexes."""
    metered = MeteredStore(place.store)
    with open_backup(replace(place, store=metered), "latest", "show", utc_now, random_token) as view:
        found = find_records(view, question, ScanCounters())
    return found, metered.meter.usage().bytes_down


def check(place: SourceRef, size_bytes: int, codec: Codec) -> None:
    if codec is Codec.ZSTD:
        require_feature(place.store, ZSTD_FRAMES)
    end = back_up_large(place, size_bytes, codec)
    for offset in (0, end // 3, end - 1):
        found, read = asked(place, RecordQuestion(TOPIC, 0, offset, exactly=True))
        assert [r.offset for r in found.records] == [offset]
        assert read < FEW_BYTES, f"offset {offset} of {size_bytes} bytes: {read}"
        print(f"{place.store.url.split('?')[0]} {codec}: offset {offset} of {size_bytes:,} bytes read {read:,} bytes")
    found, read = asked(place, RecordQuestion(TOPIC, limit=5, last=True))
    assert [r.offset for r in found.records] == list(range(end - 5, end))
    assert read < FEW_BYTES


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_one_offset_of_a_large_partition_costs_little(tmp_path: Path, codec: Codec) -> None:
    check(new_place(tmp_path / "repo"), 40_000_000, codec)


@pytest.mark.xdist_group("show-bucket")
def test_one_offset_in_a_bucket_costs_little(tmp_path: Path) -> None:
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    for store in bucket(tmp_path):
        check(create_repository(store, facts, utc_now(), random_token).place("prod"), 20_000_000, Codec.ZSTD)


@pytest.mark.soak
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_one_offset_of_a_gigabyte_costs_little(tmp_path: Path, codec: Codec) -> None:
    place = new_place(tmp_path / "repo")
    check(place, 1_000_000_000, codec)
    began = time.perf_counter()
    found, read = asked(place, RecordQuestion(TOPIC, search=RecordSearch(contains=b"not there")))
    assert not found.records
    print(f"--contains over {read:,} bytes: {time.perf_counter() - began:.1f} s")
