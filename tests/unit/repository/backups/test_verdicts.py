"""A backup that differs from its source is not damaged: also where an older release stored that it is."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import utc_now
from logkeep.repository.backups.verdicts import DAMAGED, GOOD, BackupVerdict, verdicts
from logkeep.repository.backups.verification import (
    MAX_STORED_FINDINGS,
    Verification,
    inherited_damage,
    known_damaged,
    known_digests,
    put_verification,
    stored_verifications,
)
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.lease import NOTHING_SEEN
from logkeep.store.memory import MemoryStore

FIRST, SECOND = BackupId(1), BackupId(2)
BEGIN = datetime(2026, 11, 18, tzinfo=UTC)


class Stored:
    """Verifications of one source, one minute after the other."""

    def __init__(self) -> None:
        self.place = SourceRef(MemoryStore(), "r", "prod")
        self._count = 0

    def put(
        self,
        codes: Iterable[str],
        level: str = "source",
        backup: BackupId = FIRST,
        where: str = "a.log",
        now: datetime | None = None,
    ) -> None:
        found = [Finding(code=code, severity=Severity.DAMAGE, where=where, what="it differs") for code in codes]
        names = tuple(dict.fromkeys(f.where for f in found))
        document = Verification(
            repository="r",
            source="prod",
            id=backup,
            level=level,
            verdict=DAMAGED if found else GOOD,
            sample="1/1",
            time="",
            head=NOTHING_SEEN,
            objects=1,
            bytes=1,
            findings=tuple(found[:MAX_STORED_FINDINGS]),
            damaged_objects=names,
        )
        put_verification(self.place, document, now or self._now(), f"{self._count:016x}")

    def inherit(self, **damaged: str) -> None:
        named = {f"{name}.log": level for name, level in damaged.items()}
        document = inherited_damage(self.place, SECOND, named, NOTHING_SEEN, BEGIN)
        put_verification(self.place, document, self._now(), f"{self._count:016x}")

    def _now(self) -> datetime:
        self._count += 1
        return BEGIN + timedelta(minutes=self._count)

    def health(self, backup: BackupId = FIRST) -> BackupVerdict | None:
        """None: no verification counts."""
        return verdicts(parsed for parsed, _ in stored_verifications(self.place)).get(backup)

    def is_damaged(self, backup: BackupId = FIRST) -> bool:
        found = self.health(backup)
        return found is not None and found.damaged


@pytest.fixture
def stored() -> Stored:
    return Stored()


@pytest.mark.parametrize("codes", [("record-differs",), ("record-missing", "record-differs")])
def test_differences_from_the_source_say_nothing_of_the_backup(stored: Stored, codes: tuple[str, ...]) -> None:
    stored.put(codes)
    assert stored.health() is None
    assert known_damaged(stored.place, {FIRST}) == {}
    assert known_digests(stored.place, FIRST) == {}


@pytest.mark.parametrize("codes", [("hash-mismatch",), ("record-differs", "batch-damaged"), ("digest-differs",)])
def test_damage_that_the_same_run_found_stays_until_the_records_are_good(
    stored: Stored, codes: tuple[str, ...]
) -> None:
    stored.put(codes)
    assert stored.is_damaged()
    assert set(known_damaged(stored.place, {FIRST})) == {"a.log"}
    stored.put((), "data")
    assert stored.is_damaged()
    stored.put((), "records")
    found = stored.health()
    assert found is not None
    assert (found.damaged, found.level) == (False, "records")


def test_weaker_damage_hides_no_deeper_damage(stored: Stored) -> None:
    """After a lost object came back, the wrong hash of another one remains."""
    stored.put(("hash-mismatch",), "data", where="a.log")
    stored.put(("object-missing",), "files", where="b.log")
    assert known_damaged(stored.place, {FIRST}) == {"a.log": "data", "b.log": "files"}
    stored.put((), "files")
    found = stored.health()
    assert found is not None
    assert (found.damaged, found.level) == (True, "data")
    assert known_damaged(stored.place, {FIRST}) == {"a.log": "data"}
    stored.put((), "data")
    assert not stored.is_damaged()
    assert known_damaged(stored.place, {FIRST}) == {}


def test_an_object_has_the_deepest_level_at_which_it_was_found_damaged(stored: Stored) -> None:
    for level in ("data", "records", "files"):
        stored.put(("hash-mismatch",), level)
    assert known_damaged(stored.place, {FIRST}) == {"a.log": "records"}


def test_a_weaker_good_verification_hides_no_deeper_one(stored: Stored) -> None:
    stored.put((), "records")
    deepest = stored.health()
    for level in ("files", "data"):
        stored.put((), level)
    assert deepest is not None
    assert stored.health() == deepest
    stored.put((), "records")
    later = stored.health()
    assert later is not None
    assert later.time - deepest.time == timedelta(minutes=3)


def test_names_that_earlier_releases_wrote_are_judged(stored: Stored) -> None:
    root = "sources/prod/verifications/00000000000000000001/"
    for name in (
        "20261116T021500123456Z.records.good.00000000000000aa.json",
        "20261117T021500123456Z.files.good.00000000000000ab.json",
    ):
        stored.place.store.put_new(root + name, b"never read")
    found = stored.health()
    assert found is not None
    assert (found.damaged, found.level, found.time) == (False, "records", datetime(2026, 11, 16, 2, 15, 0, 123456, UTC))


@pytest.mark.parametrize("when", ["20261340T000000000000Z", "99999999T999999999999Z", "TZTZ", "20261118T0000Z"])
def test_a_name_with_an_impossible_time_is_none_of_ours(stored: Stored, when: str) -> None:
    name = layout.verification("prod", FIRST, when, "data", DAMAGED, "0" * 16)
    stored.place.store.put_new(name, b"nothing")
    assert stored.health() is None


def test_a_copy_for_a_backup_that_shares_the_object_hides_no_damage_of_it(stored: Stored) -> None:
    """The earlier release stored the same document for every backup that has the object."""
    stored.put(("hash-mismatch",), "records", SECOND, where="b.log")
    stored.put(("record-differs",))
    stored.put(("record-differs",), backup=SECOND)
    assert stored.is_damaged(SECOND)
    assert set(known_damaged(stored.place, {FIRST, SECOND})) == {"b.log"}
    assert known_digests(stored.place, SECOND) == {}


def test_a_list_that_was_cut_off_may_hide_damage(stored: Stored) -> None:
    stored.put(["record-differs"] * (MAX_STORED_FINDINGS + 1))
    assert stored.is_damaged()


def test_a_document_that_cannot_be_read_keeps_its_verdict(stored: Stored) -> None:
    stored.put(("record-differs",))
    (name,) = [info.name for info in stored.place.store.list("")]
    stored.place.store.delete(name)
    stored.place.store.put_new(name, b"nothing")
    assert stored.is_damaged()


def test_what_later_backups_inherited_from_it_is_no_damage_either(stored: Stored) -> None:
    stored.put(("record-differs",))
    stored.inherit(a="source")
    assert not stored.is_damaged(SECOND)
    stored.put(("hash-mismatch",), "data")
    assert stored.is_damaged(), "the object itself is damaged by now"
    assert stored.is_damaged(SECOND)


def test_inherited_damage_of_another_object_stays(stored: Stored) -> None:
    stored.put(("record-differs",))
    stored.put(("hash-mismatch",), "data", where="b.log")
    stored.inherit(a="source", b="data")
    assert stored.is_damaged(SECOND)


def test_only_such_documents_are_read(stored: Stored) -> None:
    for level in ("files", "data", "records"):
        stored.put(("hash-mismatch",), level)
    stored.put((), "source")
    for _, name in stored_verifications(stored.place):
        stored.place.store.delete(name)
        stored.place.store.put_new(name, b"nothing")
    assert [parsed.verdict for parsed, _ in stored_verifications(stored.place)] == [DAMAGED, DAMAGED, DAMAGED, GOOD]


def test_a_verification_by_a_clock_that_is_ahead_hides_no_damage_that_is_found_later(
    stored: Stored,
) -> None:
    stored.put((), level="data", now=datetime(2090, 1, 1, tzinfo=UTC))
    stored.put(["hash-mismatch"], level="data", now=utc_now())
    assert stored.is_damaged()
    assert known_damaged(stored.place, [FIRST]) == {"a.log": "data"}
