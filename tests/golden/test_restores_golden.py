"""Documents of restores that earlier versions wrote are read for ever, and written as the same bytes."""

from pathlib import Path

import msgspec
import pytest

from logkeep.errors import FormatTooNew
from logkeep.model.ids import RestoreId
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import unseal
from logkeep.repository.restores import AbortedDocument, ProducersDocument, RestorePlanDocument, put_receipt
from logkeep.repository.restores.documents import EndedDocument, RestoreDocument, ResumedDocument, sealed
from logkeep.store.memory import MemoryStore
from tests.support.scripted.restores import NEW, OWNER, PRODUCERS, REPOSITORY, TOPICS, receipt

FILES = Path(__file__).parent / "restores"
PLACE = SourceRef(MemoryStore(), REPOSITORY, "shop")
ID = 20261116021500
MAP = ObjectRef("00112233aabbccdd", 123, "ab" * 32)
DOCUMENTS: dict[str, RestoreDocument] = {
    "plan": RestorePlanDocument(
        repository=REPOSITORY,
        source="shop",
        restore=ID,
        backup=NEW.backup,
        kind="kafka",
        drill=False,
        who="ops",
        owner=OWNER,
        started="2026-11-16T02:15:00.123Z",
        target=NEW.target,
        options=NEW.options,
        body=msgspec.Raw(NEW.body),
    ),
    "producers": ProducersDocument(
        repository=REPOSITORY, source="shop", restore=ID, number=1, run=OWNER.run, topics=TOPICS, producers=PRODUCERS
    ),
    "resumed": ResumedDocument(
        repository=REPOSITORY, source="shop", restore=ID, number=1, owner=OWNER, resumed="2026-11-16T02:20:00.000Z"
    ),
    "receipt": receipt(PLACE, ID, map_ref=MAP),
    "ended": EndedDocument(
        repository=REPOSITORY, source="shop", restore=ID, number=1, receipt_bytes=1024, receipt_sha256="cd" * 32
    ),
    "aborted": AbortedDocument(
        repository=REPOSITORY,
        source="shop",
        restore=ID,
        backup=NEW.backup,
        drill=False,
        owner=OWNER,
        started="2026-11-16T02:15:00.123Z",
        aborted="2026-11-16T02:16:00.000Z",
        reason="wrong cluster",
    ),
}


PLAN = DOCUMENTS["plan"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_version_1_is_read_and_written_as_the_same_bytes(name: str) -> None:
    stored, document = (FILES / f"{name}.v1.json").read_bytes(), DOCUMENTS[name]
    assert sealed(document) == stored
    opened = unseal(stored, type(document), name)
    assert msgspec.json.encode(opened) == msgspec.json.encode(document)


def test_a_plan_with_merged_batches_is_version_2() -> None:
    """Its body has a rule; a release that reads version 1 ends there, before it sends anything."""
    stored, document = (FILES / "plan.v2.json").read_bytes(), msgspec.structs.replace(PLAN, version=2)
    assert sealed(document) == stored
    assert unseal(stored, RestorePlanDocument, "plan").version == 2


def test_a_release_that_reads_version_1_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RestorePlanDocument, "newest", 1)
    with pytest.raises(FormatTooNew, match="version 2; this release reads 1"):
        unseal((FILES / "plan.v2.json").read_bytes(), RestorePlanDocument, "plan")


def test_the_names_of_a_restore_that_ended() -> None:
    place = SourceRef(MemoryStore(), REPOSITORY, "shop")
    put_receipt(place, receipt(place, RestoreId(ID), drill=True))
    root = "sources/shop/restores/00000020261116021500"
    assert [i.name for i in place.store.list("")] == [
        f"{root}/ended.000001.00000020261116001348.drill.proven.20261116T021500123Z.20261116T021512345Z.12222.json",
        f"{root}/receipt.000001.json",
    ]
