"""Repositories in which every kind of document is stored, with hostile strings wherever a schema allows them."""

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from logkeep.formats.kafka.batches import walk
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction
from logkeep.kafka.record.documents import (
    ROLE,
    AclRecord,
    ClusterRecord,
    CommitRecord,
    GroupRecord,
    OpenTransaction,
    PartitionRecord,
    QuotaRecord,
    TopicRecord,
)
from logkeep.kafka.record.scram import ROLE as SCRAM
from logkeep.kafka.record.scram import ScramDocument
from logkeep.kafka.registry.attachment import ROLE as REGISTRY
from logkeep.kafka.registry.attachment import RegistryDocument
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SubjectSetting, SubjectVersion
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.segments import Collection, LogName
from logkeep.model.time import random_token, rfc3339, utc_now
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin
from logkeep.repository.backups.catch_ups import CatchUpReceipt, CatchUpStep, put_catch_up_receipt
from logkeep.repository.backups.holds import HoldDocument
from logkeep.repository.backups.journal import UnitReceipt
from logkeep.repository.backups.journal import put_receipt as put_unit_receipt
from logkeep.repository.backups.manifest import AttachmentRef, KnownGap, LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.backups.verification import Verification, put_verification
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BegunCatchUp, GenerationsAction
from logkeep.repository.chain.commits import SourceRef, put_checkpoint, read_chain
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.freshness import put_freshness
from logkeep.repository.chain.lease import NOTHING_SEEN, LeaseDocument
from logkeep.repository.chain.owner import Owner
from logkeep.repository.chain.roles import InstanceRole, RoleSeat
from logkeep.repository.chain.write_session import writing
from logkeep.repository.restores import (
    NewRestore,
    begin_restore,
    note_resumed,
    put_aborted,
    put_map,
    put_producers,
    read_plan,
)
from logkeep.repository.restores import put_receipt as put_restore_receipt
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.repository.upkeep.marks import GarbageMark
from logkeep.store.local.store import LocalStore
from tests.support.cli.filled_repository import new_repository
from tests.support.hostile.corpus import TEXT
from tests.support.hostile.documents import harmless
from tests.support.kafka.handmade_batches import dense
from tests.support.scripted.restores import NEW, PRODUCERS, TARGET, TOPICS, map_bytes, receipt
from tests.support.zookeeper.encoding import LOG_HEADER, body, record
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.repositories import archived

TOPIC = "orders"
"""The name of the topic with records is also a directory's, and can only be a legal one."""
TOPIC_ID = f"{7:032x}"
ELSEWHERE = Owner("00000000000000aa", "another-host", 4711, "boot", "4026531836", "123456")
_FINDING = Finding(code="config", severity=Severity.WARNING, where="where", what="what", remedy="remedy")


def changeable(kind: str, field: str, text: str) -> bool:
    return harmless(kind, field, text) and text != TOPIC


def kafka_repository(root: Path) -> SourceRef:
    """A source `prod` with two backups, a failed one, restores, and every other kind of document."""
    store = LocalStore(root)
    store.create()
    place = SourceRef(store, new_repository(store), "prod")
    first, last = _kafka_backup(place, 0, 4), _kafka_backup(place, 4, 8)
    with writing(place, "backup", utc_now, random_token) as session:
        begin(session, ensure_source(place, "kafka", {"cluster_id": "cluster"}, utc_now())).fail("it went away")
    _catch_up(place)
    put_checkpoint(place, read_chain(place), random_token())
    put_freshness(place, utc_now(), last, 3)
    _restores(place, last)
    _reader_hold(place, BackupId(first))
    _verification(place, BackupId(first))
    mark = GarbageMark(repository=place.repository, source=place.source, generation=1, names=("name",))
    store.put_new(layout.mark("prod", 1, random_token()), seal(mark))
    _interrupted(place)
    _instance(place)
    return place


def _catch_up(place: SourceRef) -> None:
    """A new generation that has one receipt."""
    with writing(place, "generations new", utc_now, random_token) as session:
        new = BegunCatchUp(random_token(), TOPIC, TOPIC_ID, 1, "reason")
        session.commit(GenerationsAction(begun=(new,)))
        receipt = CatchUpReceipt(repository=place.repository, source=place.source, catch_up=new.token,
                                 step=CatchUpStep.COPIED, run=session.run, unit="unit", segments=(),
                                 note="note")  # fmt: skip
        put_catch_up_receipt(place, receipt, random_token())


def _instance(place: SourceRef) -> None:
    seat = RoleSeat(place, "instance", ELSEWHERE, 300.0, utc_now, time.monotonic)
    assert seat.try_take()
    seat.report(InstanceRole.ACTIVE)


def _kafka_backup(place: SourceRef, start: int, end: int) -> int:
    log = LogName(Collection.TOPICS, TOPIC, TOPIC_ID, 0)
    with writing(place, "backup", utc_now, random_token) as session:
        ongoing = begin(session, ensure_source(place, "kafka", {"cluster_id": "cluster"}, utc_now()), tags=("tag",))
        writer = SegmentWriter(place, log, start, SegmentLimits(1 << 20), 0, random_token)
        data = dense(start, 2).encode()
        writer.write(memoryview(data), walk(data).batches)
        writer.finish(start + 2)
        gap = KnownGap(log, start + 2, end, "reason")
        done = FinishedRun(
            cut=[LogCut(log, 0, end)], new=writer.segments, gaps=[gap], attachments=_attachments(place, ongoing, end),
            findings=(_FINDING,),
        )  # fmt: skip
        return ongoing.complete(done).id


def _attachments(place: SourceRef, ongoing: OngoingBackup, end: int) -> list[AttachmentRef]:
    common: dict[str, Any] = {"repository": place.repository, "source": place.source, "id": ongoing.id}
    commit = CommitRecord(TOPIC, 0, 1, 1, 0, "metadata")
    cluster = ClusterRecord(
        **common,
        cluster_id="cluster",
        topics=(
            TopicRecord(TOPIC, TOPIC_ID, False, 1, 1, {"retention.ms": "value"}),
            TopicRecord("second", f"{8:032x}", False, 0, 1, {}),
        ),
        logs=(PartitionRecord(TOPIC, 0, TOPIC_ID, 0, end, end, 0),),
        open_transactions=(OpenTransaction(TOPIC, 0, 4711, 1),),
        groups=(GroupRecord("billing", "classic", "Empty", "consumer", (commit,)),),
        acls=(AclRecord("TOPIC", "orders2", "LITERAL", "User:app", "*", "READ", "ALLOW"),),
        quotas=(QuotaRecord((("user", "name"),), (("producer_byte_rate", 1048576.0),)),),
    )
    scram = ScramDocument(**common, recipients=("age1x",), credentials=1, age="armour")
    documents = ((ROLE, cluster), (SCRAM, scram), (REGISTRY, RegistryDocument(**common, **_REGISTRY)))
    return [put_attachment(place, ongoing.id, role, d, random_token()) for role, d in documents]


_REGISTRY: dict[str, Any] = {
    "url": "url",
    "captured": rfc3339(utc_now()),
    "registry": ArchivedRegistry(
        origin="confluent",
        definitions=(SchemaDefinition(1, "text", "AVRO2", guid="guid"),),
        versions=(SubjectVersion("subject", 1, 1),),
        compatibility=(SubjectSetting("FULL", "subject"),),
        modes=(SubjectSetting("MODE"),),
        highest_id=1,
    ),
}


def _restores(place: SourceRef, backup: int) -> None:
    """One that ended, one that was aborted, and one that was interrupted."""
    new = NewRestore(backup, "kafka", TARGET, NEW.body, NEW.options, "ops")
    done, aborted, open_ = (begin_restore(place, new, utc_now, random_token) for _ in range(3))
    ref = put_map(place, done, map_bytes(done), random_token())
    put_restore_receipt(place, receipt(place, done, backup=backup, map_ref=ref))
    put_aborted(place, read_plan(place, aborted), "reason", utc_now, random_token)
    put_producers(place, open_, TOPICS, PRODUCERS, "run", after=0)
    note_resumed(place, open_, utc_now, random_token)


def _verification(place: SourceRef, backup: BackupId) -> None:
    """One that found damage, which later commands repeat."""
    document = Verification(
        repository=place.repository, source=place.source, id=backup, level="data", verdict="damaged", sample="1/1",
        time=rfc3339(utc_now()), head=NOTHING_SEEN, objects=1, bytes=1, findings=(_FINDING,), damaged_objects=("name",),
    )  # fmt: skip
    put_verification(place, document, utc_now(), random_token())


def _interrupted(place: SourceRef) -> None:
    """A backup with one finished unit, whose process ended."""
    with writing(place, "backup", utc_now, random_token) as session:
        ongoing = begin(session, ensure_source(place, "kafka", {"cluster_id": "cluster"}, utc_now()))
        unit = UnitReceipt(repository=place.repository, source=place.source, id=ongoing.id, run=session.run,
                           unit="unit", segments=(), note="note")  # fmt: skip
        put_unit_receipt(place, unit, random_token())


def _reader_hold(place: SourceRef, backup: BackupId) -> None:
    document = HoldDocument(repository=place.repository, source=place.source, id=backup, operation="verify",
                            owner=ELSEWHERE, lifetime_s=3600)  # fmt: skip
    place.store.put_new(layout.hold(place.source, backup, random_token()), seal(document))


def held_lease(root: Path, **texts: str) -> None:
    """The lease of `prod` as another host would hold it for an hour more."""
    path = root / "leases" / "prod.json"
    document = json.loads(path.read_bytes().split(b"\n")[0])
    document |= {"released": False, "owner": msgspec.to_builtins(ELSEWHERE), "acquired": rfc3339(utc_now()),
                 "expires": rfc3339(utc_now() + timedelta(hours=1)), **texts}  # fmt: skip
    path.write_bytes(seal(msgspec.convert(document, LeaseDocument)))


def zookeeper_directories(root: Path) -> MadeServer:
    """A server's directories, with znodes of hostile names."""
    server = MadeServer(root, zxid=6)
    names = (TEXT.encode(), b"not-utf8\xff\xed\xa0\x80", b"second" + TEXT.encode(), b"plain", b"long" + b"N" * 100_000)
    changes = [Create(b"/" + name, TEXT.encode(), OPEN_ACL, False, -1) for name in names]
    records = [
        record(body(Transaction(7, 1, zxid, 1_700_000_000_000 + zxid, 1, change, None)))
        for zxid, change in enumerate(changes, 2)
    ]
    server.snapshot(1)
    (server.log_dir / "log.2").write_bytes(LOG_HEADER + b"".join(records))
    return server


def zookeeper_repository(root: Path, server: MadeServer) -> SourceRef:
    store = LocalStore(root)
    store.create()
    place = SourceRef(store, new_repository(store), "zk")
    archived(place, server)
    return place
