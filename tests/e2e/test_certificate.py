"""`verify --level cut` as a user calls it: on true backups, forged ones and damaged ones."""

import random
from pathlib import Path

import pytest

from logkeep.checkpoint.certificate.run import CutCheck
from logkeep.engine.inline import InlineEngine
from logkeep.engine.threads import ThreadedEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verification import stored_certificate
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from tests.support.certificate.archive import archived
from tests.support.certificate.cuts import Cut, true_cut
from tests.support.certificate.forgeries import outbox_entry_lost, state_changed
from tests.support.certificate.participants import back_up_cut
from tests.support.cli.filled_repository import empty
from tests.support.cli.in_process import Here
from tests.support.kafka.compacted_backups import CompactedSource

PLAIN = ("--source", "shop")


def cut_with_snapshot() -> Cut:
    """One that reports no external positions: those need a member."""
    cuts = (true_cut(seed, external=False) for seed in range(200))
    return next(
        cut
        for cut in cuts
        if len(cut.partitions) > 1 and outbox_entry_lost(cut, random.Random(1)) and state_changed(cut, random.Random(2))
    )


@pytest.fixture(scope="module")
def cut() -> Cut:
    return cut_with_snapshot()


def test_a_true_backup_is_certified(cut: Cut, tmp_path: Path) -> None:
    place, here = archived(cut, tmp_path), Here(tmp_path)
    assert here.run("list", "--json").document["backups"][0]["certified"] is False
    report = here.run("verify", str(cut.checkpoint), "--level", "cut", "--json", *PLAIN).document
    assert (report["level"], report["verdict"]) == ("cut", "good")
    assert {rule["outcome"] for rule in report["certificate"]["rules"]} == {"held"}
    assert report["certificate_verdict"] == "the cut is consistent: 13 rules held"
    assert report["certificate"]["records"] == sum(len(part.log) for part in cut.partitions)
    assert here.run("list", "--json").document["backups"][0]["certified"] is True
    assert "certified" in here.run("list").stdout
    shown = here.run("info", str(cut.checkpoint), *PLAIN).stdout
    assert "V13 held" in shown
    assert "the cut is consistent: 13 rules held" in shown
    stored = stored_certificate(place, BackupId(cut.checkpoint))
    assert stored is not None
    assert len(stored.rules) == 13


def test_a_forged_backup_is_damaged_and_names_the_records(cut: Cut, tmp_path: Path) -> None:
    forged = outbox_entry_lost(cut, random.Random(1))
    assert forged is not None
    archived(forged[1], tmp_path)
    here = Here(tmp_path)
    called = here.run("verify", str(cut.checkpoint), "--level", "cut", *PLAIN, code=10)
    assert "V11 BROKEN" in called.stdout
    assert "is neither received nor pending" in called.stdout
    row = here.run("list", "--json").document["backups"][0]
    assert (row["certified"], row["health"], row["verified_level"]) == (False, "damaged", "cut")
    here.run("verify", str(cut.checkpoint), "--level", "data", *PLAIN, code=2)  # no byte is damaged, the cut is


def test_v8_a_damaged_object_breaks_the_certificate(cut: Cut, tmp_path: Path) -> None:
    archived(cut, tmp_path)
    here = Here(tmp_path)
    path = sorted((tmp_path / "repo/sources/shop/topics").glob("**/partition=*/*.log*"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    report = here.run("verify", str(cut.checkpoint), "--level", "cut", "--json", *PLAIN, code=10).document
    outcomes = {rule["rule"]: rule["outcome"] for rule in report["certificate"]["rules"]}
    assert outcomes["V8"] == "broken"
    assert set(outcomes.values()) == {"broken", "unchecked"}
    assert any(path.name in finding["where"] for finding in report["findings"])


def test_v10_a_changed_snapshot_is_found_in_the_archive(cut: Cut, tmp_path: Path) -> None:
    forged = state_changed(cut, random.Random(2))
    assert forged is not None
    archived(forged[1], tmp_path)
    report = Here(tmp_path).run("verify", str(cut.checkpoint), "--level", "cut", "--json", *PLAIN, code=10).document
    assert [rule["rule"] for rule in report["certificate"]["rules"] if rule["outcome"] == "broken"] == ["V10"]


def test_a_sample_is_refused(cut: Cut, tmp_path: Path) -> None:
    archived(cut, tmp_path)
    Here(tmp_path).run("verify", str(cut.checkpoint), "--level", "cut", "--sample", "1/2", *PLAIN, code=40)


def test_engines_agree(cut: Cut, tmp_path: Path) -> None:
    place, found = archived(cut, tmp_path), []
    for engine in (InlineEngine(), ThreadedEngine(2)):
        verifier = Verifier(place, engine, this_process("aa"), utc_now, random_token, deeper=CutCheck())
        found.append(verifier.verify(BackupId(cut.checkpoint), "cut").document.certificate)
    assert found[0] == found[1]


def test_a_backup_of_participants_is_certified_and_one_of_a_cluster_alone_has_no_cut(tmp_path: Path) -> None:
    source, here = CompactedSource(empty(tmp_path).place("prod")), Here(tmp_path)
    source.transaction([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], 7, commits=True)
    plain, whole = source.back_up(), back_up_cut(source)
    refused = here.run("verify", str(plain), "--level", "cut", code=40).stderr
    assert "it has no cut of an application" in refused
    report = here.run("verify", str(whole), "--level", "cut", "--json").document
    assert (report["level"], report["verdict"]) == ("cut", "good")
    assert report["certificate_verdict"].startswith("the cut is consistent: 9 rules held")
    rows = {row["id"]: row["certified"] for row in here.run("list", "--json").document["backups"]}
    assert rows == {plain: False, whole: True}
    inexact = back_up_cut(source, transactional=False)
    assert "nothing is lost, but the cut is not exact" in here.run("verify", str(inexact), "--level", "cut").stdout
