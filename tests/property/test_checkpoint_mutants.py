"""The simulator is trusted because it finds what is broken on purpose: each mutant of the shipped code is detected.

A mutant is a change of a function's source: where, the text, what replaces it, and which check finds it. Mutants of the
archive are looked for in the schedules that run the shipped actor, coordinator and restore. Mutants that change no
outcome that a user could see are found by the test of their own requirement.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import msgspec
import pytest

from logkeep.application.kafka import in_transit
from logkeep.checkpoint import machine, machine_state, records, snapshot_choice, snapshots
from logkeep.checkpoint.backup_actor import BackupActor
from logkeep.checkpoint.processor import Processor
from logkeep.checkpoint.restore import plan
from logkeep.checkpoint.simulator import schedules
from logkeep.checkpoint.simulator.plan import make_plan
from logkeep.errors import LogkeepError
from logkeep.repository.backups import backup, journal
from tests.support.mutations import mutate
from tests.support.processors import ProcessorGroup
from tests.support.scripted_application import World
from tests.unit.application.kafka import test_in_transit
from tests.unit.checkpoint import test_machine, test_processor, test_restore

MOST_SEEDS = 3_000
FIRST = {
    "low-water mark under an old stamp": 25,
    "create acknowledged before it is processed": 162,
    "snapshot at or behind the position": 66,
    "pin after the remote call": 117,
    "compaction past a pin": 76,
    "two leaders under one key": 91,
}
"""Where the search begins for those that few schedules find; a hint that saves time, no condition."""


class Mutant(NamedTuple):
    owner: ModuleType | type
    function: str
    old: str
    new: str
    found_as: set[str]
    more: tuple[tuple[ModuleType | type, str, str, str], ...] = ()
    """Changes of other functions without which the first one would be none."""

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for change in (self[:4], *self.more):
            mutate(monkeypatch, *change)


CAUSAL = {"orphan", "lost", "twice", "money", "stuck"}
"""What a wrong cut or a forgotten message leads to; which of them comes first depends on the schedule."""
OLD_STAMP = "_addressed(msgspec.structs.replace(state, checkpoint_id=2),"
TWO = "(_forced(state, stamp.checkpoint_id), message)"
FOREIGN = 'return "" if stamp.application == state.application else "other application"'

MUTANTS = {
    "low-water mark under an old stamp": Mutant(
        machine, "resend", "_addressed(state,", OLD_STAMP.replace("2", "0"), CAUSAL
    ),
    "acknowledgement without a stamp": Mutant(records, "acknowledgement", "(STAMP, pack_stamp(stamp)), ", "", CAUSAL),
    "command before create": Mutant(
        machine,
        "_receive_own",
        TWO,
        "(message, _forced(state, stamp.checkpoint_id))",
        CAUSAL,
    ),
    "create counts again, >= for >": Mutant(
        machine, "_checkpoint", "document.id <= state.checkpoint_id", "document.id < state.checkpoint_id", CAUSAL
    ),
    "create acknowledged before it is processed": Mutant(
        machine,
        "_receive_create",
        "return Reception((message,))",
        "return Reception((message,), (Reply(document.nonce, document),))",
        {"late"},
    ),
    "position of created for create": Mutant(
        machine,
        "_checkpoint",
        "TakeBackup(document.id, create.position,",
        "TakeBackup(document.id, create.position + 1,",
        CAUSAL,
    ),
    "replay that ignores created": Mutant(
        machine_state, "apply", "(Kind.CREATED, Kind.IGNORED)", "(Kind.IGNORED,)", CAUSAL
    ),
    "create appended while commands wait": Mutant(
        machine, "drained", "return state.processed >= last_input", "return True", CAUSAL
    ),
    "snapshot at or behind the position": Mutant(
        snapshot_choice, "_unusable", "snapshot.position >= create", "False", CAUSAL
    ),
    "outbox not in the snapshot": Mutant(machine_state, "load", 'outbox=maps["outbox"]', "outbox={}", CAUSAL),
    "receiver's memory not in the snapshot": Mutant(
        machine_state, "load", 'received=maps["received"]', "received={}", CAUSAL
    ),
    "foreign stamp obeyed": Mutant(machine, "_foreign", FOREIGN, 'return ""', {"foreign"}),
    "old inbox obeyed after a restore": Mutant(
        machine, "_receive_own", "stamp.history != state.history", "False", CAUSAL
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_simulator_finds_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name].apply(monkeypatch)
    _look_for(name, MUTANTS[name])


def _look_for(name: str, mutant: Mutant, *, shipped: bool = False) -> None:
    for seed in range(FIRST.get(name, 0), MOST_SEEDS):
        outcome = schedules.run_plan(msgspec.structs.replace(make_plan(seed), shipped=shipped))
        if outcome.findings:
            assert {found.what for found in outcome.findings} & mutant.found_as, outcome.findings
            return
    pytest.fail(f"{MOST_SEEDS} schedules did not find it")


CHECK_IDS = (backup, "check_wanted", "wanted <= last_id", "False")
PUT_OVER = "place.store.delete(layout.request(place.source, BackupId(request.id))); put_own("
AT_CHECKPOINT = "position, cut_end = at[checkpoint]"
ARCHIVE_MUTANTS = {
    "pin after the remote call": Mutant(
        BackupActor,
        "begin",
        "pinned = self._pin(cut.position)",
        'pinned = _Pinned(NoSnapshotFits("not pinned"), None)',
        {"reason"},
        (
            (
                BackupActor,
                "_copy",
                "place = self._me.open_place()",
                'place = self._me.open_place(); yield "opened"; '
                "job = _Job(job.cut, job.nonce, self._pin(job.cut.position), job.begun_s)",
            ),
        ),
    ),
    "compaction past a pin": Mutant(
        snapshots,
        "compaction_bound",
        "bound if reserved_from is None else min(bound, reserved_from)",
        "bound",
        {"reason"},
    ),
    "unlock forgotten on error": Mutant(
        BackupActor,
        "_copy",
        "    self._free(job.pinned)\n        yield from self._record_failure(job.cut, job.nonce, str(error))\n"
        "    finally:\n        self._free(job.pinned)",
        "    yield from self._record_failure(job.cut, job.nonce, str(error))\n    finally:\n        pass",
        {"pin"},
    ),
    "completed before the last file": Mutant(
        BackupActor,
        "_copy_files",
        "copied = yield",
        "put_copy(place, request.id, self._completed(request, job, plan, branch, position, segments), segments, "
        "me.run, me.tokens()); copied = yield",
        {"unrestorable"},
    ),
    "two leaders under one key": Mutant(
        BackupActor, "_copy_files", "batches, me.tokens)", 'batches, lambda: f"f{job.cut.id:015x}")', {"reason"}
    ),
    "failed id retaken, id reused after a restore": Mutant(
        journal, "put_request", "put_own(", PUT_OVER, {"retaken", "reused"}, (CHECK_IDS,)
    ),
    "restore with one record too many": Mutant(
        plan, "_partition", AT_CHECKPOINT, f"{AT_CHECKPOINT}; cut_end += 1", {"unrestorable"}
    ),
}


@pytest.mark.parametrize("name", ARCHIVE_MUTANTS)
def test_the_simulator_finds_it_in_the_archive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ARCHIVE_MUTANTS[name].apply(monkeypatch)
    _look_for(name, ARCHIVE_MUTANTS[name], shipped=True)


def _replays(directory: Path) -> None:
    group = ProcessorGroup(directory, test_processor.HANDLERS)
    try:
        test_processor.test_r25_r26_replay_applies_write_sets_and_calls_no_handler(group)
    finally:
        group.close()


def _restores(directory: Path) -> None:
    test_restore.test_r12_r13_r58_r59_every_checkpoint_is_restored_up_to_its_create_and_no_further(
        World(), directory, 25
    )


def _keeps_what_is_in_transit(_: Path) -> None:
    test_in_transit.test_v5_a_record_whose_cause_was_read_before_the_checkpoint_is_in_transit()


INPUT = "self._inputs.append(record)"
BEGIN_BACKUP = (
    "record.kind == Kind.CREATE and self._around.begin_backup(machine.TakeBackup(document_of(record).id, "
    'record.position, "", ""), self.state.cut_at(document_of(record).id, record.position, record.position + 1))'
)
OWN_TESTS: dict[str, tuple[Mutant, Callable[[Path], None]]] = {
    "stamp at enqueue": (
        Mutant(machine, "resend", "_addressed(state,", OLD_STAMP, set()),
        lambda _: test_machine.test_r27_a_message_carries_the_id_of_its_sending_and_a_resend_that_of_today(),
    ),
    "replay that triggers a backup": (
        Mutant(Processor, "_replay", INPUT, f"{INPUT}; {BEGIN_BACKUP}", set()),
        _replays,
    ),
    "restore with one record too few": (
        Mutant(plan, "_partition", AT_CHECKPOINT, f"{AT_CHECKPOINT}; cut_end -= 1", set()),
        _restores,
    ),
    "in-transit dropped": (
        Mutant(in_transit, "in_transit", "if inside:", "if False:", set()),
        _keeps_what_is_in_transit,
    ),
    "replay that takes a result's own position": (
        Mutant(
            machine_state, "_checkpoint", "checkpoint_position=position", "checkpoint_position=record.position", set()
        ),
        lambda _: test_machine.test_r25_replay_takes_the_source_position_of_created(),
    ),
}
"""Causally harmless, or out of the simulator's world: the test of the requirement finds them."""


@pytest.mark.parametrize("name", OWN_TESTS)
def test_the_requirements_own_test_finds_it(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutant, test = OWN_TESTS[name]
    test(tmp_path / "right")
    mutant.apply(monkeypatch)
    with pytest.raises((AssertionError, LogkeepError)):
        test(tmp_path / "wrong")
