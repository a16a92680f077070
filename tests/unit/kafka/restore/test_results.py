"""What tasks said becomes rows, findings and a verdict; groups keep where they stood first."""

import msgspec
import pytest

from logkeep.kafka.restore.facts.units import LogProof, LogResult, ReplayOutcome
from logkeep.kafka.restore.finish import with_first_offsets
from logkeep.kafka.restore.results import all_restored, result_findings
from logkeep.model.segments import Collection, LogName
from logkeep.repository.restores import RestoredGroup

LOG = LogName(Collection.TOPICS, "orders", "0" * 32, 0)
DIGEST = "lk1:3:00000000000000010000000000000002:0000000000000003:0"
PROOF = LogProof(records=3, archive_digest=DIGEST, target_digest=DIGEST)
GOOD = LogResult(log=LOG, topic="orders", partition=0, outcome=ReplayOutcome.DONE, records=3, proof=PROOF)


def test_only_what_is_there_and_proven_is_whole() -> None:
    assert all_restored([GOOD], prove=True)
    unproven = msgspec.structs.replace(GOOD, proof=None)
    assert not all_restored([GOOD, unproven], prove=True)
    assert all_restored([GOOD, unproven], prove=False)
    wrong = msgspec.structs.replace(GOOD, proof=msgspec.structs.replace(PROOF, first_difference=7))
    assert not all_restored([wrong], prove=True)
    assert not all_restored([wrong], prove=False), "nobody asked for it, and it was found all the same"


@pytest.mark.parametrize("outcome", [o for o in ReplayOutcome if o is not ReplayOutcome.DONE])
def test_every_bad_outcome_is_a_finding_with_a_remedy(outcome: ReplayOutcome) -> None:
    bad = msgspec.structs.replace(GOOD, outcome=outcome, detail="why", proof=None)
    assert not all_restored([bad], prove=False)
    (finding,) = result_findings([GOOD, bad])
    assert (finding.code, finding.where, finding.what) == (outcome, "orders/0", "why")
    assert finding.remedy


def test_a_failed_proof_names_the_offset() -> None:
    proof = msgspec.structs.replace(PROOF, first_difference=41, detail="another value")
    (finding,) = result_findings([msgspec.structs.replace(GOOD, proof=proof)])
    assert "at offset 41: another value" in finding.what


def test_a_group_is_rolled_back_to_where_it_stood_before_the_first_attempt() -> None:
    first = RestoredGroup(group="g", topic="t", partition=0, previous_offset=3, previous_metadata="m", offset=40)
    second = RestoredGroup(group="g", topic="t", partition=0, previous_offset=40, offset=41)
    new = RestoredGroup(group="h", topic="t", partition=0, previous_offset=None, offset=5)
    kept = with_first_offsets((second, new), [(first,), (second,)])
    assert [(r.previous_offset, r.previous_metadata, r.offset) for r in kept] == [(3, "m", 41), (None, "", 5)]


def test_append_times_are_told_as_what_they_became() -> None:
    appended = msgspec.structs.replace(PROOF, archive_digest=f"{DIGEST[:-1]}3")
    (finding,) = result_findings([msgspec.structs.replace(GOOD, proof=appended)])
    assert (finding.code, finding.severity) == ("append-times", "note")
