"""When a run makes another cut to prove deletions, and which topics it copies again. Plans end these tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from msgspec.structs import replace as changed

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_passes import CompactedMode, DeletionPasses, copied_again
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import plan_backup
from logkeep.kafka.backup.planner import BackupPlanner
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup
from logkeep.kafka.backup.run import KafkaBackup, _BackupRun
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.backup.values import CopiedLogs, KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.repository.backups.backup import begin
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.write_session import writing
from tests.support.kafka.cluster_values import bounds, facts, topic
from tests.support.scripted.backup import log_of
from tests.unit.repository.backups.test_burials import Repository

SCRIPTED, OTHER = topic("scripted"), topic("other")
NOW = replace(
    facts((SCRIPTED, OTHER), {TopicPartition(name, 0): bounds(0, 9) for name in ("scripted", "other")}, {}),
    cut=ClockTime(1, ClockName.BROKER),
)


class _Planned(Exception):
    """Carries the topics to copy again."""


@dataclass(frozen=True)
class _Planner(BackupPlanner):
    """Finds these facts when it asks again."""

    then: Facts = field(default=NOW)

    def gather_facts(self, *_: object) -> Facts:
        return self.then

    def plan_from(
        self,
        facts: Facts,
        base: PreviousBackup,
        generation: int,
        earlier: Sequence[CopyResult] = (),
        recopied: Mapping[str, str] | None = None,
    ) -> PreparedBackup:
        raise _Planned(*(recopied or ()))


def _prove(made: Repository, mode: CompactedMode, then: Facts = NOW) -> DeletionPasses:
    """One log is archived; nothing of it is proven, since its read times are not known."""
    task = KafkaBackup(made.place, ClientSettings(()), made.clock, made.token)
    run = _BackupRun(task, _Planner(made.place, KafkaBackupOptions(compacted=mode), cast(Cluster, None), then=then))
    prepared = PreparedBackup(NOW, PreviousBackup(), plan_backup(NOW.topics, NOW.bounds, {}, {}), (), 1)
    copied = CopiedLogs(Assembled((LogCut(log_of(0), 0, 9),), (), (), (), {}), NOW)
    with writing(made.place, "backup", made.clock, made.token) as session:
        ongoing = begin(session, ensure_source(made.place, "scripted", {"id": "s-1"}, made.now))
        proved = run._prove(session, ongoing, prepared, copied, InlineEngine())
    assert proved[:2] == (prepared, copied)
    return proved[2]


def test_no_other_cut_is_made_where_a_topic_was_deleted_meanwhile() -> None:
    """It would leave out what was copied of that topic."""
    with pytest.raises(_Planned, match="scripted"):
        _prove(Repository(), CompactedMode.RECOPY)
    without = replace(facts((SCRIPTED,), {TopicPartition("scripted", 0): bounds(0, 9)}, {}), cut=NOW.cut)
    assert _prove(Repository(), CompactedMode.RECOPY, without).doubtful() == (log_of(0),)


@pytest.mark.parametrize("mode", list(CompactedMode))
def test_a_topic_whose_burial_is_missing_is_copied_again_in_any_mode(mode: CompactedMode) -> None:
    made = Repository()
    made.bury()
    made.now = made.now.replace(hour=5)
    folded = read_chain(made.place)
    made.store.delete(layout.buried("prod", folded.burials(folded.last_id)[0].object.token))
    with pytest.raises(_Planned, match="scripted"):
        _prove(made, mode)
    assert _prove(Repository(), CompactedMode.INCREMENTAL).doubtful() == (log_of(0),), "only reported"


def test_the_reason_to_copy_a_topic_again() -> None:
    doubtful, unreadable = log_of(0), changed(log_of(0), name="other")
    assert copied_again(CompactedMode.AUTO, [doubtful], []) == {}
    assert list(copied_again(CompactedMode.AUTO, [doubtful], [unreadable])) == ["other"]
    assert list(copied_again(CompactedMode.RECOPY, [doubtful], [unreadable])) == ["scripted", "other"]
    assert "missing or damaged" in copied_again(CompactedMode.RECOPY, [doubtful], [doubtful])["scripted"]
