"""A captured registry in the store: written once, pinned by its reference, and never read when it is damaged."""

from collections.abc import Callable

import pytest

from logkeep.errors import Damaged
from logkeep.kafka.registry.attachment import ROLE, captured_registry, put_registry
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.attachments import put_packed_attachment
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts, create
from logkeep.repository.verify.checks import CheckedObjects, check_attachments
from logkeep.store.memory import MemoryStore
from tests.support.kafka.registry_steps import karapace_registry

ID, TOKEN = BackupId(7), "00112233aabbccdd"
EXPORT = bytes(range(256)) * 20_000
"""More than two frames in base64."""


class Stored:
    def __init__(self) -> None:
        self.store = MemoryStore()
        made = create(self.store, StoreFacts(put_new=True, replace=True, durable=True), utc_now(), random_token)
        self.place = SourceRef(self.store, made.repository, "shop")
        self.name = layout.attachment("shop", ID, ROLE, TOKEN, Codec.ZSTD)

    def put(self) -> AttachmentRef:
        registry = karapace_registry()
        return put_registry(self.place, ID, registry, url="url", export=EXPORT, captured=utc_now(), token=TOKEN)

    def manifest(self, *refs: AttachmentRef) -> Manifest:
        return Manifest(
            version=2, repository=self.place.repository, source="shop", id=ID, run="0" * 16, kind="kafka", identity={},
            started="", finished="", base=None, cut=(), parts=(), attachments=refs,
        )  # fmt: skip


def test_it_is_read_as_it_was_written() -> None:
    stored = Stored()
    manifest = stored.manifest(stored.put())
    found = captured_registry(stored.place, manifest)
    assert found is not None
    assert (found.registry, found.export, found.url) == (karapace_registry(), EXPORT, "url")
    assert captured_registry(stored.place, stored.manifest()) is None
    checked = CheckedObjects([])
    check_attachments(stored.place, manifest, checked)
    assert checked.findings == []


def test_a_stream_has_the_bytes_of_every_packed_attachment() -> None:
    stored = Stored()
    streamed = stored.put()
    document = captured_registry(stored.place, stored.manifest(streamed))
    assert document is not None
    other = put_packed_attachment(stored.place, ID, ROLE, document, "00112233aabbccde")
    assert (streamed.size, streamed.sha256, streamed.plain_size) == (other.size, other.sha256, other.plain_size)


@pytest.mark.parametrize(
    "change",
    (
        lambda data: data[:-1],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: data + b"\0",
        lambda _: b"",
    ),
)
def test_damage_is_found_by_readers_and_by_verify(change: Callable[[bytes], bytes]) -> None:
    stored = Stored()
    manifest = stored.manifest(stored.put())
    data = stored.store.get(stored.name, 1 << 30)
    stored.store.delete(stored.name)
    for lost in (False, True):
        if not lost:
            stored.store.put_new(stored.name, change(data))
        with pytest.raises(Damaged):
            captured_registry(stored.place, manifest)
        checked = CheckedObjects([])
        check_attachments(stored.place, manifest, checked)
        assert [f.where for f in checked.findings] == [stored.name]
        if not lost:
            stored.store.delete(stored.name)
