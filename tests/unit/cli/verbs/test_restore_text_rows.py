"""Restores of very many partitions and groups: sums that fit on a screen, and nothing bad summed up."""

import msgspec
import pytest

from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.restore_text import FEW, finding_lines, group_lines, partition_lines, planned_lines, rates_text
from logkeep.model.findings import Finding, Severity
from tests.support.scripted.restores import GROUP, PARTITION

HINT = "--all shows every one"
WIDE = TerminalStyle(unicode=True)
NARROW = TerminalStyle(unicode=True, width=80)
MANY = [
    msgspec.structs.replace(PARTITION, source_topic=t, topic=t, source_partition=p, partition=p, bytes=size)
    for t, size in (("a-topic-with-a-rather-long-name-of-a-large-company", 10), ("orders", 1000))
    for p in range(500)
]
GROUPS = [msgspec.structs.replace(GROUP, group=f"g{n}", partition=p, reread=2) for n in range(3) for p in range(100)]


def test_many_partitions_are_topics_the_largest_first() -> None:
    narrow = partition_lines(MANY, NARROW, every=False, hint=HINT)[0].splitlines()
    assert all(len(line) <= 80 for line in narrow)
    header, first, second = partition_lines(MANY, WIDE, every=False, hint=HINT)[0].splitlines()
    assert header.split() == ["TOPIC", "PARTS", "RECORDS", "SIZE", "COMPARED", "DONE"]
    assert first.split()[:3] == ["orders", "500", "1,500"]
    assert first.split()[-2:] == ["all", "all"]
    assert second.startswith("a-topic")
    assert "COMPARED" not in partition_lines(MANY, WIDE, every=False, hint=HINT, compared=False)[0]


def test_a_plan_of_many_partitions_promises_no_outcome() -> None:
    header = planned_lines(MANY, WIDE)[0].splitlines()[0]
    assert header.split() == ["TOPIC", "PARTS", "RECORDS", "SIZE"]
    few = planned_lines([msgspec.structs.replace(PARTITION, detail="[7, 10)")], WIDE)[0]
    assert "[7, 10)" in few


def test_what_went_wrong_is_never_summed_up() -> None:
    bad = msgspec.structs.replace(
        MANY[7], source_partition=500, partition=500, outcome="foreign-writer", detail="offset 17 was taken"
    )
    lines = partition_lines([*MANY, bad], WIDE, every=False, hint=HINT)
    assert lines[0].splitlines()[1].endswith("foreign-writer")
    assert lines[1].endswith("/500: offset 17 was taken")
    assert "500 of 501" in lines[2]
    worse = [msgspec.structs.replace(row, outcome="refused") for row in MANY]
    assert "… and 960 more partitions; --all shows every one" in partition_lines(worse, WIDE, every=False, hint=HINT)


def test_shares_of_one_partition_are_one_partition() -> None:
    shares = [
        msgspec.structs.replace(PARTITION, source_partition=source, partition=p, records=2)
        for source in range(5)
        for p in range(7)
    ]
    row = partition_lines(shares, WIDE, every=False, hint=HINT)[0].splitlines()[1].split()
    assert row[1:3] == ["7", "70"]
    assert row[-2:] == ["all", "all"]
    bad = [msgspec.structs.replace(shares[0], outcome="refused"), *shares[1:]]
    assert partition_lines(bad, WIDE, every=False, hint=HINT)[-1].endswith("6 of 7"), "one bad share is not hidden"


@pytest.mark.parametrize("number", [FEW, FEW + 1])
def test_few_are_shown_one_by_one(number: int) -> None:
    table = partition_lines(MANY[:number], WIDE, every=False, hint=HINT)[0]
    assert table.startswith("PARTITION" if number == FEW else "TOPIC")
    assert len(partition_lines(MANY[:number], WIDE, every=True, hint=HINT)[0].splitlines()) == number + 1


def test_renames_are_shown_where_there_are_any() -> None:
    assert planned_lines([PARTITION], WIDE)[0].startswith("PARTITION")
    renamed = msgspec.structs.replace(PARTITION, topic="copy")
    assert planned_lines([renamed], WIDE)[0].startswith("FROM")


def test_many_positions_are_groups_and_the_inexact_come_first() -> None:
    lines = group_lines(GROUPS, WIDE, every=False, hint=HINT)
    assert [line.split() for line in lines[0].splitlines()[1:]] == [
        [f"g{n}", "orders", "100", "all", "200"] for n in range(3)
    ]
    left = msgspec.structs.replace(GROUP, group="z", offset=None, detail="it has members: c-1")
    lines = group_lines([*GROUPS, left], WIDE, every=False, hint=HINT)
    assert lines[0].splitlines()[1].startswith("z ")
    assert lines[1] == "z in orders/0: it has members: c-1"
    assert lines[2].splitlines()[-1].split() == ["z", "orders", "1", "none", "0"]


def test_the_same_reason_is_told_once() -> None:
    rows = [msgspec.structs.replace(GROUP, partition=p, detail="it had read everything") for p in range(3)]
    assert group_lines(rows, WIDE, every=False, hint=HINT)[1:] == [
        "billing in orders, 3 partitions: it had read everything"
    ]


def test_findings_are_broken_between_words_and_say_what_to_do() -> None:
    finding = Finding(
        code="c", severity=Severity.WARNING, where="orders", what="word " * 30 + "end", remedy="do something about it"
    )
    text = "\n".join(finding_lines([finding], NARROW, every=False))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[1].startswith(" " * 8 + "word")
    assert text.splitlines()[-1] == " " * 8 + "try: do something about it"
    note = msgspec.structs.replace(finding, severity=Severity.NOTE)
    assert "try:" not in "\n".join(finding_lines([note], WIDE, every=False))
    assert len(finding_lines([note], WIDE, every=False)[0].splitlines()) == 1


def test_units_and_plurals() -> None:
    assert rates_text({"sent_bytes_per_s": 2 << 20, "records_per_s": 1234.5}) == "records 1,234/s, sent 2.0 MiB/s"
    assert (plural(1, "topic"), plural(0, "topic"), plural(1234, "topic")) == ("1 topic", "0 topics", "1,234 topics")
