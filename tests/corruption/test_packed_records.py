"""Damage to a packed attachment: changed, cut, swapped, lost, lying, exploding. Always Damaged, in bounded memory."""

import hashlib
import struct
import tracemalloc

import msgspec
import pyarrow
import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zstd_frames import packed_frame
from logkeep.kafka.record.documents import ROLE, ClusterRecord, GroupRecord
from logkeep.kafka.record.stored_record import put_record
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, seal, unseal
from logkeep.repository.chain.format import StoreFacts, create, open_format
from logkeep.repository.verify.checks import CheckedObjects, check_attachments
from logkeep.store.memory import MemoryStore
from tests.golden.test_kafka_record_golden import RECORD

ID = BackupId(RECORD.id)
LARGE = msgspec.structs.replace(
    RECORD, groups=tuple(GroupRecord(f"group {n} {n * 7919}", "classic", "Empty", "", ()) for n in range(60_000))
)
"""More than two frames."""


class Stored:
    """One record in a repository of its own."""

    def __init__(self, record: ClusterRecord = LARGE) -> None:
        self.store = MemoryStore()
        create(self.store, StoreFacts(put_new=True, replace=True, durable=True), utc_now(), random_token)
        self.place = SourceRef(self.store, RECORD.repository, "shop")
        self.ref = put_record(self.place, ID, record, "00112233aabbccdd")

    @property
    def name(self) -> str:
        return layout.attachment("shop", ID, ROLE, self.ref.token, Codec.ZSTD)

    @property
    def data(self) -> bytes:
        return self.store.get(self.name, 1 << 30)

    def manifest(self, ref: AttachmentRef | None = None) -> Manifest:
        return Manifest(
            version=2, repository=RECORD.repository, source="shop", id=ID, run="0" * 16, kind="kafka", identity={},
            started="", finished="", base=None, cut=(), parts=(), attachments=(ref or self.ref,),
        )  # fmt: skip

    def read(self, ref: AttachmentRef | None = None) -> ClusterRecord | None:
        return read_attachment(self.place, self.manifest(ref), ROLE, ClusterRecord)

    def replaced(self, data: bytes) -> None:
        self.store.delete(self.name)
        self.store.put_new(self.name, data)

    def pinned(self, data: bytes, plain_size: int) -> AttachmentRef:
        """Other bytes, and a reference that agrees with them: only its frames can be wrong."""
        self.replaced(data)
        return AttachmentRef(ROLE, self.ref.token, len(data), hashlib.sha256(data).hexdigest(), Codec.ZSTD, plain_size)

    def verified(self) -> set[str]:
        checked = CheckedObjects([])
        check_attachments(self.place, self.manifest(), checked)
        return {finding.code for finding in checked.findings}


@pytest.fixture
def stored() -> Stored:
    return Stored()


def test_a_whole_record_is_read_back(stored: Stored) -> None:
    assert stored.ref.plain_size > 4 * MIB
    assert stored.ref.size < stored.ref.plain_size / 4
    found = stored.read()
    assert found == msgspec.structs.replace(LARGE, version=2)
    assert stored.verified() == set()
    assert open_format(stored.store).document.required_features == ("packed-records",)


def test_plain_attachments_of_earlier_releases_are_read(stored: Stored) -> None:
    ref = put_attachment(stored.place, ID, ROLE, RECORD, random_token())
    assert not ref.packed
    assert msgspec.json.encode(ref) == msgspec.json.encode(
        {"role": ROLE, "token": ref.token, "size": ref.size, "sha256": ref.sha256}
    )
    assert stored.read(ref) == RECORD


@pytest.mark.parametrize("at", [0, 4, 40, -1])
def test_every_flipped_bit_is_found(stored: Stored, at: int) -> None:
    data = bytearray(stored.data)
    data[at] ^= 4
    stored.replaced(bytes(data))
    with pytest.raises(Damaged, match="not the attachment that was committed"):
        stored.read()
    assert stored.verified() == {"hash-mismatch"}


def test_a_cut_a_swap_and_a_loss_are_found(stored: Stored) -> None:
    whole = stored.data
    for wrong in (whole[:-1], Stored(RECORD).data, b""):
        stored.replaced(wrong)
        with pytest.raises(Damaged):
            stored.read()
        assert stored.verified() == {"hash-mismatch"}
    stored.store.delete(stored.name)
    with pytest.raises(Damaged, match="missing"):
        stored.read()
    assert stored.verified() == {"object-missing"}


def test_frames_that_do_not_fit_their_reference_are_damage(stored: Stored) -> None:
    whole, size = stored.data, stored.ref.plain_size
    for data, plain_size in ((whole[:-1], size), (whole, size - 1), (whole, size + 1), (whole * 2, size), (b"", 0)):
        with pytest.raises(Damaged):
            stored.read(stored.pinned(data, plain_size))
    stored.store.put_new(layout.attachment("shop", ID, ROLE, stored.ref.token, Codec.GZIP), whole)
    with pytest.raises(Damaged, match="packed with gzip"):
        stored.read(msgspec.structs.replace(stored.ref, codec=Codec.GZIP))


def _exploding(content_bytes: int) -> bytes:
    """A frame of a few bytes that says it holds so many: blocks of one repeated byte."""
    head = struct.pack("<IBBQ", 0xFD2FB528, 0xC0, 7 << 3, content_bytes)
    block, last = 128 << 10, content_bytes // (128 << 10) - 1
    return head + b"".join(
        ((block << 3) | 1 << 1 | (at == last)).to_bytes(3, "little") + b"a" for at in range(last + 1)
    )


@pytest.mark.parametrize("times", [1, 2000])
def test_a_bomb_is_refused_before_memory_is_allocated(stored: Stored, times: int) -> None:
    bomb = _exploding(2 * MIB) * times if times > 1 else _exploding(1 << 30)
    before = pyarrow.default_memory_pool().max_memory()
    tracemalloc.start()
    try:
        for plain_size in (ClusterRecord.limit + 1, MIB, 4 << 30):
            ref = stored.pinned(bomb, plain_size)
            with pytest.raises(Damaged):
                stored.read(ref)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
        assert pyarrow.default_memory_pool().max_memory() < before + 64 * MIB
    finally:
        tracemalloc.stop()


def test_a_bomb_inside_of_the_limits_is_no_document(stored: Stored) -> None:
    ref = stored.pinned(_exploding(2 * MIB), 2 * MIB)
    with pytest.raises(Damaged, match="truncated or has no seal"):
        stored.read(ref)


def test_a_release_that_reads_version_1_ends_at_both_documents(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison that every release makes, with the number of the earlier ones."""
    monkeypatch.setattr(ClusterRecord, "newest", 1)
    monkeypatch.setattr(Manifest, "newest", 1)
    with pytest.raises(FormatTooNew, match="version 2; this release reads 1"):
        stored.read()
    with pytest.raises(FormatTooNew, match="version 2; this release reads 1"):
        unseal(seal(stored.manifest()), Manifest, "manifest")


def test_a_frame_is_never_larger_than_what_a_reader_takes() -> None:
    assert packed_frame(memoryview(b"a" * (2 * MIB)))[:4] == struct.pack("<I", 0xFD2FB528)
    assert len(_exploding(2 * MIB)) < 100
