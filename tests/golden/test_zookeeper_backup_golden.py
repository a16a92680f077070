"""A bundle and the record of a backup as the first release wrote them: every later one reads them the same."""

from pathlib import Path

import msgspec

from logkeep.model.segments import Proof
from logkeep.repository.chain.documents import seal, unseal
from logkeep.zookeeper.bundle.document import BackupInfo, encoded, read_info, with_seal
from logkeep.zookeeper.bundle.info_file import is_intact
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.repo.record import EnsembleRecord
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import content, txn

GOLDEN = Path(__file__).parent / "zookeeper_backup"
EPOCH = 1 << 32


def test_a_bundle_is_read_as_it_was_written() -> None:
    view = BundleView(GOLDEN / "golden")
    assert [(log.first, log.last, log.proof, log.borders) for log in view.logs] == [
        (1, 2, Proof.PROVEN, ()),
        (3, 3, Proof.UNPROVEN, ()),
        (4, 5, Proof.UNPROVEN, ()),
        (EPOCH + 1, EPOCH + 2, Proof.PROVEN, ((5, EPOCH + 1),)),
    ]
    read = content(view)
    assert read["log.100000001"] == LOG_HEADER + txn(EPOCH + 1) + txn(EPOCH + 2)
    assert {name: len(data) for name, data in read.items()} == {
        **{log_name: one.size_bytes for one in view.logs for log_name in [f"log.{one.first:x}"]},
        **{one.name: one.size_bytes for one in view.snapshots},
    }


def test_its_document_is_written_as_it_was() -> None:
    path = GOLDEN / "golden"
    assert encoded(read_info(path)) == (path / "metadata" / "backup_info.json").read_bytes()


def test_the_record_in_a_repository_is_read_and_written_as_it_was() -> None:
    data = (GOLDEN / "ensemble.json").read_bytes()
    record = unseal(data, EnsembleRecord, "ensemble.json")
    assert seal(record) == data
    assert [(r.first, r.last) for r in record.logs] == [(1, 2), (3, 3), (4, 5), (EPOCH + 1, EPOCH + 2)]
    assert record.snapshots[0].zxid == 2


def test_a_bundle_without_a_seal_is_as_good_as_ever() -> None:
    assert BundleView(GOLDEN / "golden").intact


def test_the_seal_is_the_one_that_it_was() -> None:
    data = (GOLDEN / "sealed_info.json").read_bytes()
    info = msgspec.json.decode(data, type=BackupInfo)
    assert is_intact(msgspec.json.decode(data))
    assert encoded(with_seal(msgspec.structs.replace(info, seal=msgspec.UNSET))) == data
