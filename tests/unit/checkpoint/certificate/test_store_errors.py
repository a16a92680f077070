"""A store that does not answer is no damage of a backup; damage is that of the object that has it."""

from pathlib import Path

import pytest

from logkeep.checkpoint.certificate.run import CutCheck
from logkeep.engine.inline import InlineEngine
from logkeep.errors import StoreDenied
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult
from tests.support.certificate.archive import archived
from tests.support.certificate.cuts import true_cut
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore


def test_a_store_that_refuses_ends_the_verification_and_leaves_no_verdict(tmp_path: Path) -> None:
    cut = true_cut(3)
    place = archived(cut, tmp_path)

    def refuses(_number: int, operation: str, name: str) -> Fault | None:
        return Fault(before=StoreDenied("no", subject=name)) if operation == "get_range" and ".log" in name else None

    with pytest.raises(StoreDenied):
        _verified(SourceRef(FaultyStore(place.store, refuses), place.repository, place.source), cut.checkpoint)
    assert _verified(place, cut.checkpoint).document.verdict == GOOD


def _verified(place: SourceRef, backup: int) -> VerifyResult:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=CutCheck())
    return verifier.verify(BackupId(backup), "cut")
