"""One crash point: run a backup in a process of its own, end it after a store call, and look at what is left."""

import os
import signal
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta

from logkeep.engine.inline import InlineEngine
from logkeep.errors import LogkeepError
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import view
from logkeep.repository.backups.states import Completed
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect, plan_garbage
from logkeep.repository.verify.run import Verifier
from tests.support.scripted.backup import Ends, back_up, expected, restored

AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))
KILLED, DONE, FAILED = "killed", "done", "failed"


def run_backup(place: SourceRef, ends: Ends, *, resumed: bool = False) -> int:
    return back_up(place, ends, InlineEngine(), utc_now, random_token, resumed=resumed).id


def in_child(action: Callable[[], object]) -> str:
    """Run something in a forked process that may kill itself. Says how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            action()
        except LogkeepError:
            traceback.print_exc()  # shown if the test expected another end
            code = 1
        except BaseException:  # noqa: BLE001 - a child must never return into the test runner
            traceback.print_exc()
            code = 2
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return KILLED
    code = os.WEXITSTATUS(status)
    assert code != 2, "the backup raised something that is not an error of ours"
    return FAILED if code else DONE


def check_after(place: SourceRef, before: Mapping[int, Ends], ends: Ends) -> None:
    """All earlier backups intact, the new one whole or absent, then resume, collect garbage, and look again."""
    known = _completed(place)
    assert set(before) <= set(known), "an earlier backup is gone"
    new = [i for i in known if i not in before]
    assert len(new) <= 1
    _check_whole(place, {**before, **dict.fromkeys(new, ends)})
    finished = dict(before) | dict.fromkeys(new, ends)
    if not new:
        finished[run_backup(place, ends, resumed=True)] = ends
    _check_whole(place, finished)
    _collect_and_check(place, finished)


def _completed(place: SourceRef) -> list[int]:
    return [s.id for s in view(place, utc_now(), this_process("reader")).states() if isinstance(s, Completed)]


def _check_whole(place: SourceRef, backups: Mapping[int, Ends]) -> None:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    for backup_id, ends in backups.items():
        assert restored(place, backup_id) == expected(ends), f"backup {backup_id} does not read back"
        verified = verifier.verify(BackupId(backup_id), "data")
        assert verified.document.verdict == GOOD, verified.findings


def _collect_and_check(place: SourceRef, backups: Mapping[int, Ends]) -> None:
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    with writing(place, "gc", utc_now, random_token) as session:
        left = plan_garbage(session, AT_ONCE)
    assert left.to_mark == left.to_sweep == (), "garbage was left behind"
    assert [e.id for e in read_chain(place).completed] == sorted(backups)
    for backup_id, ends in backups.items():
        assert restored(place, backup_id) == expected(ends), f"gc damaged backup {backup_id}"
