"""`verify --level records` and `--level source` against a real broker: what is proven, what is said, what is found."""

import pickle
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.errors import UsageError
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import WireFetchConnection
from logkeep.kafka.verify.compare_task import CompareUnit, LivePiece, compare_with
from logkeep.kafka.verify.records import check_records, covered_segments
from logkeep.kafka.verify.source import SourceCheck
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, random_token, utc_now
from logkeep.repository.backups.verdicts import verdicts
from logkeep.repository.backups.verification import put_verification, stored_verifications
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.checks import EVERYTHING, VerifySample
from logkeep.repository.verify.run import Deeper, Verifier, VerifyResult
from tests.e2e.test_bad_input import one_error
from tests.support.cli.filled_repository import Filled, document
from tests.support.kafka.copied_logs import look_at_disk, on_disk
from tests.support.kafka.plain_client import PlainBrokers, PlainConnection
from tests.support.kafka.tampered_repository import resealed, tampered
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")


class _Pickling(InlineEngine):
    """Hands over pickled copies, as Spark does."""

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # as its parent
        task, units = pickle.loads(pickle.dumps((task, list(units))))  # noqa: S301 - our own, of a moment ago
        return super().map(task, units, result, label=label, weight=weight)


class _Noting(InlineEngine):
    """Notes at what rate the tasks of each job read."""

    def __init__(self) -> None:
        super().__init__()
        self.rates: dict[str, list[int]] = {}

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # as its parent
        limits = [getattr(getattr(unit, "compared", unit), "limits", None) for unit in units]
        self.rates[label] = [each.bytes_per_s for each in limits if each is not None]
        return super().map(task, units, result, label=label, weight=weight)


@dataclass(frozen=True)
class Source:
    """One broker's archive, verified against it."""

    archive: Archive

    def verify(
        self, backup_id: int, level: str = "source", sample: VerifySample = EVERYTHING, clock: Clock = utc_now
    ) -> VerifyResult:
        check: Deeper = check_records
        if level == "source":
            check = SourceCheck(ClientSettings(endpoints(self.archive.bootstrap)))
        owner = this_process("verify")
        verifier = Verifier(self.archive.place, self.archive.engine, owner, clock, random_token, deeper=check)
        return verifier.verify(BackupId(backup_id), level, sample)

    def standing(self, backup_id: int) -> tuple[bool, str]:
        """Whether the repository calls it damaged, and what it says that this is known from."""
        found = verdicts(said for said, _ in stored_verifications(self.archive.place))[BackupId(backup_id)]
        return found.damaged, found.level


@pytest.fixture
def source(archive: Archive) -> Source:
    return Source(archive)


def _write(topics: Matrix, topic: str, records: int, keys: int = 1000, **settings: object) -> None:
    """Batches of ten records."""
    producer = topics.producer(batch_num_messages=10, **settings)
    for i in range(records):
        producer.produce(topic, b"value %d " % i * 5, b"key %d" % (i % keys), 0, headers={"n": b"%d" % i})
    producer.flush(60)


def _codes(verified: VerifyResult) -> list[str]:
    return [f.code for f in verified.findings]


def _summary(verified: VerifyResult) -> str:
    (note,) = [f.what for f in verified.findings if f.code == "source-compared"]
    return note


def test_a_log_that_only_grew_is_proven_byte_for_byte(topics: Matrix, source: Source) -> None:
    topic = topics.create("grew", 2)
    _write(topics, topic, 300, compression_type="zstd")
    done = source.archive.back_up(topic, segment_bytes=4000).entry.id
    _write(topics, topic, 50)
    verified = source.verify(done)
    assert _codes(verified) == ["source-compared"]
    assert _summary(verified).startswith(
        "2 logs compared: 300 records are in the source in the very same batches, 0 more"
    )
    assert source.standing(done) == (False, "source")
    assert [d.records for d in verified.document.digests] == [300, 0]
    third, now = VerifySample(1, 3), utc_now()  # a sample is that of a day
    segments = [s for some in source.archive.segments(done).values() for s in some]
    taken = sum(s.records for s in segments if third.takes(s.token, now.date()))
    sampled = source.verify(done, sample=third, clock=lambda: now)
    assert _codes(sampled) == ["source-compared"]
    assert f" {taken} records are in the source" in _summary(sampled)


def test_transactions_and_their_markers(topics: Matrix, source: Source) -> None:
    topic = topics.create("settled")
    producer = topics.producer(transactional_id="settled", batch_num_messages=10)
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for i in range(40):
            producer.produce(topic, b"v", b"%d" % i, 0)
        producer.flush(30)
        end(30)
    done = source.archive.back_up(topic).entry.id
    verified = source.verify(done)
    assert _codes(verified) == ["source-compared"]
    assert " 80 records are in the source in the very same batches" in _summary(verified)


def test_the_rate_of_the_user_holds_for_all_that_is_read_from_the_source(topics: Matrix, archive: Archive) -> None:
    names = topics.create("limited-source", 2, {"cleanup.policy": "compact"}), topics.create("limited-too")
    for name in names:
        _write(topics, name, 100)
    done = archive.back_up(*names).entry.id
    check = SourceCheck(ClientSettings(endpoints(archive.bootstrap)), limit_download=50_000_000)
    engine = _Noting()
    Verifier(archive.place, engine, this_process("verify"), utc_now, random_token, deeper=check).verify(
        BackupId(done), "source"
    )
    assert engine.rates["compare with source"] == [50_000_000]
    assert set(engine.rates["compare deletions"]) == {50_000_000}


def test_what_compaction_rewrote_is_found_record_by_record(
    kafka: EmbeddedKafka, topics: Matrix, source: Source
) -> None:
    quick = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    topic = topics.create("rewritten", 1, {**quick, "min.compaction.lag.ms": "9000000"})
    _write(topics, topic, 200, keys=37, compression_type="lz4")
    _write(topics, topic, 200, keys=61)
    done = source.archive.back_up(topic, segment_bytes=3000).entry.id
    before = on_disk(kafka, topic, 0, 0, 400)
    change = ["--entity-type", "topics", "--entity-name", topic, "--delete-config", "min.compaction.lag.ms"]
    kafka.java_tool("kafka.admin.ConfigCommand", ["--bootstrap-server", kafka.bootstrap, "--alter", *change])

    def cleaned() -> bool:
        _write(topics, topic, 1, keys=1)
        now = look_at_disk(kafka, topic, 0, 0, 400)
        return now is not None and len(b"".join(now)) < 0.7 * len(b"".join(before))

    wait_for(cleaned, "the cleaner")
    verified = source.verify(done)
    assert _codes(verified) == ["source-compared"]
    _, identical, equal, gone = map(int, re.findall(r"[0-9]+", _summary(verified)))
    assert equal > 0
    assert gone > 0
    assert identical + equal + gone == 400
    assert source.standing(done) == (False, "source")


def test_what_retention_removed_is_counted(topics: Matrix, source: Source) -> None:
    topic = topics.create("expired")
    _write(topics, topic, 100)
    done = source.archive.back_up(topic, segment_bytes=1500).entry.id
    for future in topics.admin.delete_records([TopicPartition(topic, 0, 64)]).values():
        future.result(30)
    verified = source.verify(done)
    assert _codes(verified) == ["source-compared"]
    assert "36 records are in the source" in _summary(verified)
    assert "64 archived ones are gone" in _summary(verified)


def test_a_topic_that_was_made_again_or_is_gone_cannot_be_compared(topics: Matrix, source: Source) -> None:
    names = [topics.create(name) for name in ("again", "gone", "stays")]
    for name in names:
        _write(topics, name, 20)
    done = source.archive.back_up(*names).entry.id
    topics.delete("again", "gone")
    topics.create("again")
    _write(topics, "again", 30)
    verified = source.verify(done)
    told = {f.where: f.what for f in verified.findings if f.code == "not-comparable"}
    assert sorted(told) == ["again/0", "gone/0"]
    assert "re-created" in told["again/0"]
    assert "does not exist" in told["gone/0"]
    assert _summary(verified).startswith("1 log compared: 20 records")
    assert source.standing(done) == (False, "records"), "the source proved nothing for two of three logs"


def _without_a_batch(batches: list[bytes]) -> list[bytes]:
    return [b for b in batches if b[:8] != (40).to_bytes(8, "big")]


def _with_another_value(batches: list[bytes]) -> list[bytes]:
    return [resealed(b.replace(b"value 44 ", b"value 45 ")) for b in batches]


def _with_another_time(batches: list[bytes]) -> list[bytes]:
    """One second later, in the batch at offset 40 alone."""
    return [
        resealed(b[:27] + (int.from_bytes(b[27:35], "big") + 1000).to_bytes(8, "big") + b[35:])
        if b[:8] == (40).to_bytes(8, "big")
        else b
        for b in batches
    ]


_KEPT = {"min.compaction.lag.ms": "9000000"}


def test_a_compacted_log_is_read_once(topics: Matrix, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are compared, and keys that would come back are looked for, in the same pass."""
    topic = topics.create("read-once", 1, {"cleanup.policy": "compact", **_KEPT})
    _write(topics, topic, 5000)
    done = source.archive.back_up(topic, segment_bytes=50_000)
    received, fetched = WireFetchConnection.receive, list[int]()

    def counted(connection: WireFetchConnection) -> memoryview:
        frame = received(connection)
        fetched.append(len(frame))
        return frame

    monkeypatch.setattr(WireFetchConnection, "receive", counted)
    verified = source.verify(done.entry.id)
    assert _summary(verified).startswith("1 log compared: 5,000 records are in the source in the very same batches")
    assert sum(fetched) < 1.5 * done.entry.summary.new_bytes


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize(
    ("change", "offset"),
    [
        (_without_a_batch, "offset 40 and 9 more up to 99 is in the source and not in the archive"),
        (_with_another_value, "offset 44 is different"),
        (_with_another_time, "offset 40 and 9 more is different"),
    ],
)
def test_an_archive_with_right_hashes_and_wrong_records_is_found(
    topics: Matrix,
    source: Source,
    tmp_path: Path,
    change: Callable[[list[bytes]], list[bytes]],
    offset: str,
    policy: str,
) -> None:
    configs = {"cleanup.policy": policy, **_KEPT}
    topic, now_ms = topics.create(f"tampered-{policy}{change.__name__}", 1, configs), int(time.time() * 1000)
    for at in range(0, 100, 10):
        producer = topics.producer()
        for i in range(at, at + 10):
            producer.produce(topic, b"value %d " % i, b"k", 0, timestamp=now_ms + i)
        producer.flush(60)
    done = source.archive.back_up(topic).entry.id
    other = Source(Archive(source.archive.bootstrap, new_place(tmp_path / "other")))
    wrong = tampered(source.archive, done, other.archive.place, change)
    other.archive.check(wrong)
    assert other.verify(wrong, "records").document.verdict == "good"
    verified = other.verify(wrong)
    (found,) = [f for f in verified.findings if f.code == "source-differs"]
    assert (found.where, found.severity) == (f"{topic}/0", "warning")
    assert offset in found.what
    assert ".log" in found.what
    assert (verified.document.verdict, verified.also_damaged) == ("good", ())
    assert other.standing(wrong) == (False, "records"), "the bytes are those that were written: the source is judged"


def test_another_digest_than_before_is_damage(topics: Matrix, source: Source) -> None:
    topic = topics.create("digested")
    _write(topics, topic, 60)
    done = source.archive.back_up(topic).entry.id
    first, second = source.verify(done, "records"), source.verify(done, "records")
    assert first.document.digests == second.document.digests
    assert (first.findings, second.findings) == ((), ())
    assert source.standing(done) == (False, "records")
    (known,) = second.document.digests
    other = msgspec.structs.replace(known, digest=known.digest.replace("lk1:60:", "lk1:61:"))
    lie = msgspec.structs.replace(second.document, digests=(other,))
    put_verification(source.archive.place, lie, utc_now(), random_token())
    (found,) = source.verify(done, "records").findings
    assert (found.code, found.severity) == ("digest-differs", "damage")
    assert "digested/0" in found.what
    assert source.standing(done) == (True, "records")


class _Fragile(PlainConnection):
    """Hangs up after two replies."""

    left = 2

    def receive(self) -> memoryview:
        if not self.left:
            self.close()
        self.left -= 1
        return super().receive()


class _FragileBrokers(PlainBrokers):
    def connect(self, broker: int) -> PlainConnection:
        return _Fragile(self.host, self.port)


def test_connections_that_break_cost_nothing(kafka: EmbeddedKafka, topics: Matrix, source: Source) -> None:
    topic = topics.create("fragile")
    _write(topics, topic, 200)
    done = source.archive.back_up(topic, segment_bytes=5000).entry.id
    brokers, manifest = _FragileBrokers("127.0.0.1", kafka.port), source.archive.manifest(done)
    segments = iter(source.archive.segments(done)[manifest.cut[0].log])
    pieces = [LivePiece(p, brokers.topic_id(topic), 0) for p in covered_segments("prod", manifest, segments)]
    unit = CompareUnit(source.archive.place.store, brokers, 1, pieces, FetchLimits(max_bytes=1000, max_wait_ms=100))
    waited: list[float] = []
    result = compare_with(unit, lambda _: None, waited.append)
    assert (result.findings, result.identical, result.equal) == ([], 200, 0)
    assert len(waited) >= 5


def test_another_cluster_is_refused(topics: Matrix, source: Source, tmp_path: Path) -> None:
    topic = topics.create("stranger")
    _write(topics, topic, 5)
    done = source.archive.back_up(topic).entry.id
    other = Source(Archive(source.archive.bootstrap, new_place(tmp_path / "other")))
    foreign = tampered(source.archive, done, other.archive.place, lambda batches: batches, "another-cluster")
    with pytest.raises(UsageError, match="another-cluster"):
        other.verify(foreign)


def test_units_cross_process_borders(topics: Matrix, source: Source) -> None:
    """What an engine pickles for its workers comes out the same and works there."""
    topic = topics.create("pickled")
    _write(topics, topic, 30)
    done = source.archive.back_up(topic).entry.id
    verified = Source(replace(source.archive, engine=_Pickling())).verify(done)
    assert "30 records are in the source" in _summary(verified)


def test_the_command(kafka: EmbeddedKafka, topics: Matrix, tmp_path: Path) -> None:
    topic = topics.create("commanded")
    _write(topics, topic, 40)
    repo = Filled(tmp_path / "home")
    repo.home.mkdir()
    new_place(repo.root)
    servers = ("--bootstrap-servers", kafka.bootstrap)
    repo.json("kafka", "backup", *servers, "--source", "prod", "--topics", topic)
    for level, more in (("records", ()), ("source", servers)):
        report = document(repo.run("verify", "--level", level, *more, "--json"))
        assert (report["verdict"], report["level"]) == ("good", level)
    assert "no cluster is given" in one_error(repo.run("verify", "--level", "source", code=40).stderr)
    said = one_error(repo.run("verify", "--level", "source", "--bootstrap-servers", "127.0.0.1:1", code=51).stderr)
    assert "127.0.0.1:1" in said
