"""Whatever a restore has to tell comes back as it was told, and a name says what it was made from."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.time import random_token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    ProducerRow,
    RestoredGroup,
    RestoredPartition,
    RestoreTargetRef,
    RestoreVerdict,
    begin_restore,
    list_restores,
    newest_producers,
    newest_receipt,
    plan_body,
    put_producers,
    put_receipt,
    read_plan,
)
from logkeep.store.memory import MemoryStore
from tests.support.scripted.restores import NOW, REPOSITORY, clock_at, receipt

TOPICS = st.from_regex(r"\A[A-Za-z0-9._-]{1,249}\Z")
PARTITIONS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
IDS = st.integers(1, 10**18 - 1)
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(9998, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive
PARTITION_ROWS = st.builds(
    RestoredPartition,
    source_topic=TOPICS,
    source_partition=PARTITIONS,
    topic=TOPICS,
    partition=PARTITIONS,
    mode=st.sampled_from(["preserve", "translate"]),
    records=OFFSETS,
    bytes=OFFSETS,
    end=OFFSETS,
    archive_digest=TEXTS,
    target_digest=TEXTS,
    outcome=st.sampled_from(["done", "foreign-writer", "archive-damaged"]),
    detail=TEXTS,
)
GROUP_ROWS = st.builds(
    RestoredGroup,
    group=TEXTS,
    topic=TOPICS,
    partition=PARTITIONS,
    previous_offset=st.none() | OFFSETS,
    previous_metadata=TEXTS,
    offset=st.none() | OFFSETS,
    exact=st.booleans(),
    reread=OFFSETS,
    detail=TEXTS,
)
FINDINGS = st.builds(
    Finding, code=TEXTS, severity=st.sampled_from(list(Severity)), where=TEXTS, what=TEXTS, remedy=TEXTS
)
PRODUCER_ROWS = st.builds(
    ProducerRow,
    topic=TOPICS,
    partition=PARTITIONS,
    producer_id=OFFSETS,
    epoch=st.integers(0, 2**15 - 1),
    position=OFFSETS,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def place() -> SourceRef:
    return SourceRef(MemoryStore(), REPOSITORY, "shop")


@given(
    st.lists(PARTITION_ROWS, max_size=3),
    st.lists(GROUP_ROWS, max_size=3),
    st.lists(FINDINGS, max_size=2),
    st.sampled_from(list(RestoreVerdict)),
    st.booleans(),
    IDS,
    st.floats(0, 1e9),
)
def test_receipts(
    rows: list[RestoredPartition],
    groups: list[RestoredGroup],
    findings: list[Finding],
    verdict: RestoreVerdict,
    drill: bool,
    backup: int,
    took: float,
) -> None:
    where = place()
    told = msgspec.structs.replace(
        receipt(where, 7, verdict=verdict, drill=drill, backup=backup),
        partitions=tuple(rows),
        groups=tuple(groups),
        findings=tuple(findings),
        duration_s=took,
    )
    assert put_receipt(where, told) == told
    assert newest_receipt(where, RestoreId(7)) == told
    (row,) = list_restores(where)
    if verdict is RestoreVerdict.CHANGED:
        assert row.state == "failed", "nothing says how it had ended"
        assert "receipt of the restore itself" in row.trouble
        return
    assert (row.state, row.drill, row.backup, row.trouble) == (verdict.value, drill, backup, "")
    assert row.duration_s is not None
    assert abs(row.duration_s - took) <= 0.0005 + took * 1e-12


@given(JSON, st.dictionaries(TEXTS, TEXTS, max_size=3), TEXTS, IDS)
def test_plans(body: object, options: dict[str, str], who: str, backup: int) -> None:
    where = place()
    target = RestoreTargetRef(cluster_id=who, name=who)
    new = NewRestore(backup, "kafka", target, msgspec.json.encode(body), options, who, drill=True)
    plan = read_plan(where, begin_restore(where, new, clock_at(NOW), random_token))
    assert (plan.backup, plan.target, plan.options, plan.who) == (backup, target, options, who)
    assert plan_body(plan, object) == body


@given(st.lists(PRODUCER_ROWS, max_size=5))
def test_producers(rows: list[ProducerRow]) -> None:
    where = place()
    put_producers(where, RestoreId(7), {"orders": ""}, rows, "run", after=0)
    found = newest_producers(where, RestoreId(7))
    assert found is not None
    assert found.producers == tuple(rows)


@given(
    IDS,
    IDS,
    st.integers(1, 999_999),
    st.booleans(),
    st.sampled_from(list(RestoreVerdict)),
    TIMES,
    TIMES,
    st.integers(0, 10**15 - 1),
)
def test_names_that_tell_how_it_ended(
    restore: int,
    backup: int,
    number: int,
    drill: bool,
    verdict: RestoreVerdict,
    started: datetime,
    finished: datetime,
    took: int,
) -> None:
    started, finished = (t.replace(microsecond=t.microsecond // 1000 * 1000) for t in (started, finished))
    ended = layout.EndedRestoreName(BackupId(backup), drill, verdict, started, finished, took)
    name = layout.restore_ended("shop", RestoreId(restore), number, ended)
    assert layout.restore_object("shop", name) == layout.RestoreObject(RestoreId(restore), "ended", number, "", ended)
    assert not layout.collectable("shop", name)


@given(st.text(st.sampled_from("0123456789abcdef./TZ-_planproducersmapreceiptendedabortedjson"), max_size=120))
def test_any_name_is_known_or_nothing(text: str) -> None:
    layout.restore_object("shop", f"sources/shop/restores/{text}")
    layout.restore_object("shop", text)
