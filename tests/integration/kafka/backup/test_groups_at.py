"""Where groups were at a time, from an archived `__consumer_offsets`: equal to what independent clients said then."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.group_history.answers import GroupQuestion
from logkeep.kafka.group_history.run import ArchivedGroups
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.group_moments import Groups, Offsets, archived_at, current_offsets, move
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive

pytestmark = pytest.mark.xdist_group("kafka-plain")
_INTERNAL = ("__consumer_offsets", "__share_group_state")


def _by_history(commits: Iterable[Any], at_ms: int) -> Offsets:
    return {
        (c.group, c.topic, c.partition): c.offset
        for c in commits
        if c.effective_ms is not None
        and c.effective_ms <= at_ms
        and (c.ended_ms is None or at_ms < c.ended_ms)
        and c.offset >= 0
    }


def test_every_moment_is_what_the_brokers_said_then(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    with Groups(kafka, topics, "moments") as groups:
        before_ms, gone_ms, backup = _histories(groups, Archive(kafka.bootstrap, repo.place()))
        _compare(groups, archived_at(repo.place(), backup))
        _restored(groups, repo, before_ms, gone_ms)
        _shown(groups, repo, groups.moments[-1].at_ms)


def _histories(groups: Groups, archive: Archive) -> tuple[int, int, int]:
    """Two backups, and between them a topic that is deleted and created again; the times around that."""
    chance, chosen = random.Random(7), (*_INTERNAL, f"{groups.prefix}-.*")
    groups.create()
    groups.commit_as_member(0, 11)
    for step in range(6):
        move(groups, chance, step)
        groups.note()
    _overtake(groups)
    archive.back_up(*chosen, internal=True)
    before = groups.moments[-1]
    groups.recreate()
    gone = groups.note()
    for step in range(6, 15):
        move(groups, chance, step)
        groups.note()
    return before.at_ms, gone.at_ms, int(archive.back_up(*chosen, internal=True).entry.id)


def _overtake(groups: Groups) -> None:
    """A commit outside of the transaction that is open: it is the later one, also when the transaction ends."""
    groups.begin(0, 20)
    groups.commit("tx", 0, 21)
    groups.note()
    groups.end(commit=True)
    assert groups.note().offsets[groups.names["tx"], groups.topic, 0] == 21


def _compare(groups: Groups, archived: ArchivedGroups) -> None:
    wanted = (f"{groups.prefix}-.*",)
    history = archived.history(GroupQuestion(wanted))
    assert len(groups.moments) >= 20
    for moment in groups.moments:
        found = archived.positions(GroupQuestion(wanted, moment.at_ms))
        assert current_offsets(found) == moment.offsets, moment
        assert found.complete.span is not None
        assert found.complete.span.start_ms <= moment.at_ms <= found.complete.span.end_ms
        assert all(each.sure for each in found.positions)
        assert _by_history(history.commits, moment.at_ms) == moment.offsets, moment
    endings = {c.ending for c in history.commits}
    assert endings >= {"replaced", "erased", "current", "aborted", "overtaken"}
    later = archived.positions(GroupQuestion(wanted, groups.moments[-1].at_ms + 3_600_000))
    assert (later.complete.span, current_offsets(later)) == (None, groups.moments[-1].offsets)


def _restored(groups: Groups, repo: Filled, before_ms: int, gone_ms: int) -> None:
    """Offsets of a time come back; those for the topic that was deleted are left out and named."""
    name = groups.names["classic"]
    restore = ("kafka", "groups", "restore", "--backup", "latest", "--groups", name)
    target = ("--bootstrap-servers", groups.kafka.bootstrap)
    foreign = repo.json(*restore, *target, "--at", str(before_ms), "--dry-run", code=2)
    assert {r["detail"] for r in foreign["positions"]} == {"it was committed for another topic of the same name"}
    assert (foreign["groups"], foreign["complete"]["complete"]) == (0, True)
    nothing = repo.json(*restore, *target, "--at", str(gone_ms), "--dry-run", code=2)
    assert (nothing["groups"], nothing["positions"]) == (0, [])
    moment = next(m for m in groups.moments if m.at_ms > gone_ms and any(key[0] == name for key in m.offsets))
    groups.commit("classic", 0, 29)
    groups.commit("classic", 1, 29)
    done = repo.json(*restore, *target, "--at", str(moment.at_ms), "-y")
    then = {key: offset for key, offset in moment.offsets.items() if key[0] == name}
    assert {(r["group"], r["topic"], r["partition"]): r["offset"] for r in done["positions"]} == then
    assert {key: offset for key, offset in groups.by_admin().items() if key in then} == then
    assert (done["at_ms"], done["unsure"]) == (moment.at_ms, 0)
    repo.run("kafka", "groups", "rollback", "latest", *target, "-y")


def _shown(groups: Groups, repo: Filled, at_ms: int) -> None:
    chosen = ("kafka", "groups", "latest", "--group", f"{groups.prefix}-.*")
    text = repo.run(*chosen, "--at", str(at_ms)).stdout
    assert "complete for times from the beginning of the log to 2" in text
    history = repo.run(*chosen, "--history").stdout
    assert "in a transaction" in history
    raw = repo.json(*chosen, "--raw")
    assert {r["name"] for r in raw["raw"]} >= {"offset", "consumer-group", "share-snapshot"}
    assert not [r for r in raw["raw"] if r["unknown"]], "a real broker writes nothing that is not known"
    assert raw["unknown"] == {}
    assert "no group matches nobody at that time" in repo.run(
        "kafka", "groups", "latest", "--group", "nobody", "--at", str(at_ms), code=40
    ).stderr.replace("\n", " ")
    assert "is later" in repo.run(*chosen, "--at", "2001-01-01", code=40).stderr
    assert "different questions" in repo.run(*chosen, "--at", "-1h", "--history", code=40).stderr
    assert "--since limits" in repo.run(*chosen, "--since", "-1h", code=40).stderr
