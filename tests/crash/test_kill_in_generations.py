"""A new generation killed after every store call: every kept backup reads back as before or as after, and the next runs
bring it to its end. Mutants that delete where the design of 2019 did (its steps 7 and 11) are caught."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from logkeep.errors import LogkeepError
from logkeep.kafka.backup.generations.plan import GenerationRule
from logkeep.model.time import utc_now
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.crash.points import KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.property.repository_machine import Crash, DiesAt
from tests.soak_counts import soak_count
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.generation_cycle import ROUNDS, SHARE, Cycle, archived, bring_to_its_end, renew


def _in_memory() -> Cycle:
    clock: list[Cycle] = []
    start = datetime(2026, 11, 15, tzinfo=UTC)
    made = Cycle(MemoryStore(lambda: clock[0].now if clock else start), start)
    clock.append(made)
    return archived(made)


def _calls() -> int:
    made = _in_memory()
    counted = FaultyStore(made.store, no_faults)
    renew(made, counted)
    assert made.active_number() == 1
    bring_to_its_end(made)
    return len(counted.calls)


def _killed(points: Sequence[int]) -> None:
    for call in points:
        made = _in_memory()
        with suppress(Crash):
            renew(made, FaultyStore(made.store, DiesAt(call)))
            raise AssertionError(f"call {call} was never made")
        bring_to_its_end(made)


def test_killed_at_a_part_of_the_store_calls() -> None:
    _killed(seeded_part("generations", list(range(1, _calls() + 1)), 12))


@pytest.mark.soak
def test_killed_after_every_store_call() -> None:
    calls = _calls()
    points = list(range(1, calls + 1))
    points = seeded_part("generations", points, -(-calls // min(soak_count(calls), calls)))
    _killed(points)
    print(f"generations: killed after {len(points)} of {calls} store calls, every kept backup intact")


@pytest.mark.soak
def test_killed_in_a_directory(tmp_path: Path) -> None:
    """Real processes, real SIGKILL. Everything is synced, and nothing is cached."""
    calls = _calls()
    points = seeded_part(
        "generations in a directory", list(range(1, calls + 1)), -(-calls // min(soak_count(calls), calls))
    )
    for call in points:
        made = _directory(tmp_path / str(call))
        victim = FaultyStore(made.store, KillAfter(call))
        assert in_child(lambda m=made, v=victim: renew(m, v)) == KILLED  # type: ignore[misc]  # bound now
        made.end += 2 * ROUNDS
        bring_to_its_end(made)
    print(f"generations in a directory: killed after {len(points)} of {calls} store calls, every kept backup intact")


def _directory(root: Path) -> Cycle:
    store = LocalStore(root)
    store.create()
    return archived(Cycle(store, clock=utc_now, random=True))


@dataclass
class _DeletesAtStep7(Cycle):
    """The passive instance clears its destination before the new copy exists."""

    def begin_new(self, place: SourceRef | None = None) -> None:
        super().begin_new(place)
        for name in self.objects():
            self.store.delete(name)


@dataclass
class _DeletesAtStep11(Cycle):
    """The old copy is cleared as soon as the new one is active."""

    def back_up(self, place: SourceRef | None = None, rule: GenerationRule = SHARE) -> BackupEntry:
        before = self.active_number() if read_chain(self.place).completed else 0
        entry = super().back_up(place, rule)
        new = {c.log.history for c in read_manifest(self.place, entry).cut}
        for name in self.objects() if self.active_number() != before else ():
            if not any(f"/{history}/" in name for history in new):
                self.store.delete(name)
        return entry


@pytest.mark.parametrize("mutant", [_DeletesAtStep7, _DeletesAtStep11])
def test_a_mutant_that_deletes_the_old_copy_is_caught(mutant: type[Cycle]) -> None:
    made = mutant(MemoryStore(lambda: datetime(2026, 11, 15, tzinfo=UTC)))
    archived(made)
    with pytest.raises((AssertionError, LogkeepError)):
        _renew_and_check(made)


def _renew_and_check(made: Cycle) -> None:
    made.begin_new()
    for _ in range(ROUNDS):
        made.end += 2
        made.back_up()
        made.check()


def test_without_a_mutant_the_same_check_passes() -> None:
    _renew_and_check(_in_memory())
