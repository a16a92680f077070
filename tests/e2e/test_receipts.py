"""Restores and drills as users see them: `receipts`, and the last of them in `list` and `status`."""

import csv
import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    RestoredGroup,
    RestoreVerdict,
    begin_restore,
    put_map,
    put_receipt,
    state_place,
)
from tests.support.cli.filled_repository import Filled
from tests.support.scripted.restores import GROUP, NEW, NOW, PARTITION, TARGET, clock_at, map_bytes, receipt

EVIL = "evil\x1b[2J\nname"


def begun(place: SourceRef, backup: int, *, drill: bool = False) -> RestoreId:
    new = NewRestore(backup, "kafka", TARGET, NEW.body, NEW.options, "ops", drill=drill)
    return begin_restore(place, new, clock_at(NOW), random_token)


def proven(
    place: SourceRef, backup: int, *, drill: bool = False, verdict: RestoreVerdict = RestoreVerdict.PROVEN
) -> RestoreId:
    restore_id = begun(place, backup, drill=drill)
    ref = put_map(place, restore_id, map_bytes(restore_id), random_token())
    put_receipt(place, receipt(place, restore_id, backup=backup, drill=drill, verdict=verdict, map_ref=ref))
    return restore_id


def changed(repo: Filled) -> RestoreId:
    """A restore that was proven, and compared once more a day later, when retention had been at work."""
    place = repo.place()
    restore_id = proven(place, repo.ids[-1])
    lost = msgspec.structs.replace(PARTITION, outcome="proof-failed")
    what = "the log begins at offset 5 instead of 0"
    later = receipt(
        place,
        restore_id,
        backup=repo.ids[-1],
        verdict=RestoreVerdict.CHANGED,
        finished="2026-11-17T02:00:00.000Z",
        partitions=(lost,),
    )
    finding = Finding(code="proof-failed", severity=Severity.DAMAGE, where="orders/0", what=what)
    put_receipt(place, msgspec.structs.replace(later, findings=(finding,)))
    return restore_id


class TestList:
    def test_all_restores_oldest_first(self, repo: Filled) -> None:
        assert repo.run("receipts", "list").stdout == f"no restores in {repo.url}\n"
        ids = [
            proven(repo.place(), repo.ids[-1], drill=True),
            proven(repo.place(), repo.ids[0], verdict=RestoreVerdict.FAILED),
            begun(repo.place(), repo.ids[0]),
        ]
        shown = repo.json("receipts", "list")["restores"]
        assert [(r["id"], r["state"], r["drill"], r["backup"]) for r in shown] == [
            (ids[0], "proven", True, repo.ids[-1]),
            (ids[1], "failed", False, repo.ids[0]),
            (ids[2], "ongoing", False, repo.ids[0]),
        ]
        assert (shown[0]["duration_s"], shown[0]["finished"]) == (12.222, "2026-11-16T02:15:12.345Z")
        assert not shown[2]["interrupted"], "this process lives"
        lines = repo.run("receipts", "list").stdout.splitlines()
        assert [str(i) in line for i, line in zip(ids, lines[1:], strict=True)] == [True] * 3

    def test_a_document_that_cannot_be_read(self, repo: Filled) -> None:
        restore_id = begun(repo.place(), repo.ids[0])
        (repo.root / layout.restore_plan("prod", restore_id)).write_text("no plan")
        (line,) = repo.json("receipts", "list", code=2)["restores"]
        assert "no seal" in line["trouble"]
        assert "plan.json" in repo.run("receipts", "show", "latest", code=10).stderr

    def test_a_comparison_after_its_end_changes_nothing_about_how_it_ended(self, repo: Filled) -> None:
        restore_id = changed(repo)
        (row,) = repo.json("receipts", "list")["restores"]
        assert (row["state"], row["changed"], row["receipts"]) == ("proven", "2026-11-17T02:00:00.000Z", 2)
        assert row["finished"] == "2026-11-16T02:15:12.345Z"
        assert repo.run("receipts", "list").stdout.splitlines()[1].endswith("changed since")
        (told,) = [b["last_restore"] for b in repo.json("list")["backups"] if b["last_restore"]]
        assert (told["id"], told["state"]) == (restore_id, "proven")
        put_receipt(repo.place(), receipt(repo.place(), restore_id, backup=repo.ids[-1]))
        assert repo.json("receipts", "list")["restores"][0]["changed"] is None, "it was put right, and compared again"

    def test_a_comparison_without_its_name_beside_it(self, repo: Filled) -> None:
        """The process died between the two."""
        restore_id = changed(repo)
        place = repo.place()
        (name,) = [
            i.name for i in place.store.list(layout.restore(place.source, restore_id)) if "ended.000002." in i.name
        ]
        place.store.delete(name)
        (row,) = repo.json("receipts", "list")["restores"]
        assert (row["state"], row["changed"]) == ("proven", "2026-11-17T02:00:00.000Z")


class TestShow:
    def test_what_was_proven_and_what_happened_since(self, repo: Filled) -> None:
        restore_id = changed(repo)
        shown = repo.json("receipts", "show", "latest")
        assert shown["partitions"][0]["outcome"] == "done"
        assert shown["compared_again"]["partitions"][0]["outcome"] == "proof-failed"
        assert shown["map"] is not None
        text = repo.run("receipts", "show", "latest").stdout
        assert f"restore {restore_id}: proven" in text
        assert "this is how it ended" in text
        assert "compared again" in text
        assert "the log begins at offset 5 instead of 0" in text.partition("compared again")[2]

    def test_what_was_proven(self, repo: Filled) -> None:
        restore_id = proven(repo.place(), repo.ids[-1])
        for text in (str(restore_id), "latest", str(restore_id)[:13]):
            shown = repo.json("receipts", "show", text)
            assert (shown["restore"]["id"], shown["target"]["cluster_id"]) == (restore_id, TARGET.cluster_id)
            assert shown["partitions"][0]["archive_digest"] == PARTITION.archive_digest
            assert shown["groups"][0]["previous_offset"] == GROUP.previous_offset
        text = repo.run("receipts", "show", "latest").stdout
        for part in (f"restore {restore_id}: proven", "staging (cluster I_CW", "orders/0", "billing", "12 s", "NOTE"):
            assert part in text

    def test_what_went_wrong_comes_first_and_nothing_is_hidden(self, repo: Filled) -> None:
        place = repo.place()
        restore_id = begun(place, repo.ids[0])
        rows = tuple(msgspec.structs.replace(PARTITION, partition=p) for p in range(60))
        bad = msgspec.structs.replace(PARTITION, partition=60, outcome="foreign-writer", detail="offset 17 was taken")
        put_receipt(place, receipt(place, restore_id, verdict=RestoreVerdict.FAILED, partitions=(*rows, bad)))
        lines = repo.run("receipts", "show", "latest").stdout.splitlines()
        table = next(i for i, line in enumerate(lines) if line.startswith("FROM"))
        assert lines[table + 1].endswith("foreign-writer")
        assert "orders/60: offset 17 was taken" in lines
        assert any(re.fullmatch(r"orders +61 .* 60 of 61", line) for line in lines), "the rest is summed up"
        assert (
            sum(
                line.startswith("orders/0 ")
                for line in repo.run("receipts", "show", "latest", "--all").stdout.splitlines()
            )
            == 61
        )

    def test_texts_do_not_command_the_terminal(self, repo: Filled) -> None:
        place = repo.place()
        restore_id = begun(place, repo.ids[0])
        group = RestoredGroup(group=EVIL, topic="orders", partition=0, detail=EVIL)
        put_receipt(place, msgspec.structs.replace(receipt(place, restore_id), groups=(group,)))
        text = repo.run("receipts", "show", "latest").stdout
        assert "\x1b" not in text
        assert "evil\\x1b[2J\\nname" in text
        assert repo.json("receipts", "show", "latest")["groups"][0]["group"] == EVIL

    def test_one_that_has_not_ended_shows_its_plan(self, repo: Filled) -> None:
        begun(repo.place(), repo.ids[0])
        assert "offsets=preserve" in repo.run("receipts", "show", "latest").stdout
        assert repo.json("receipts", "show", "latest")["partitions"] == []

    def test_unknown_ids(self, repo: Filled) -> None:
        assert "there is no restore yet" in repo.run("receipts", "show", "latest", code=40).stderr
        proven(repo.place(), repo.ids[0])
        for text in ("7", "x"):
            assert "receipts list" in repo.run("receipts", "show", text, code=40).stderr


class TestMap:
    def test_the_map_as_csv(self, repo: Filled) -> None:
        restore_id = proven(repo.place(), repo.ids[0])
        wanted = [
            ("orders", "0", "0", "0", "10", "orders", "0"),
            ("orders", "0", "20", "10", "5", "orders", "0"),
            ("orders", "1", "7", str(1000 + restore_id % 7), "2", "copy.orders", "1"),
        ]
        repo.run("receipts", "show", "latest", "--map", "map.csv")
        in_file = (repo.home / "map.csv").read_text()
        assert repo.run("receipts", "show", "latest", "--map", "-").stdout == in_file
        header, *rows = csv.reader(io.StringIO(in_file))
        assert header[:5] == ["topic", "partition", "source_offset", "target_offset", "count"]
        assert [tuple(row) for row in rows] == wanted

    def test_refusals(self, repo: Filled) -> None:
        place = repo.place()
        proven(place, repo.ids[0])
        (repo.home / "there").write_text("mine")
        assert "already exists" in repo.run("receipts", "show", "latest", "--map", "there", code=40).stderr
        assert (repo.home / "there").read_text() == "mine"
        repo.run("receipts", "show", "latest", "--map", "-", "--json", code=40)
        repo.run("receipts", "show", "latest", "--map", "no/such/directory/x", code=40)
        begun(place, repo.ids[0])
        assert "no map" in repo.run("receipts", "show", "latest", "--map", "-", code=40).stderr

    def test_a_damaged_map_leaves_no_half_file(self, repo: Filled) -> None:
        restore_id = proven(repo.place(), repo.ids[0])
        path = repo.file(f"sources/prod/restores/{restore_id:020d}/map.*")
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        repo.run("receipts", "show", "latest", "--map", "map.csv", code=10)
        assert not (repo.home / "map.csv").exists()


class TestLastRestore:
    def test_list_and_status_show_it(self, repo: Filled) -> None:
        assert "RESTORED" not in repo.run("list").stdout
        assert "last restore        never" in repo.run("status").stdout
        proven(repo.place(), repo.ids[-1], verdict=RestoreVerdict.FAILED)
        last = proven(repo.place(), repo.ids[-1], drill=True)
        rows = repo.json("list")["backups"]
        assert [row["last_restore"] and row["last_restore"]["id"] for row in rows] == [None] * 4 + [last]
        assert repo.run("list").stdout.splitlines()[-1].endswith("drill: proven 2026-11-16 RTO 12 s")
        assert f"drill of {repo.ids[-1]}: proven 2026-11-16 02:15:12" in repo.run("status").stdout
        told = repo.json("status")["sources"][0]["last_restore"]
        assert (told["id"], told["drill"], told["state"], told["duration_s"]) == (last, True, "proven", 12.222)

    def test_damaged_restores_do_not_stop_either(self, repo: Filled) -> None:
        proven(repo.place(), repo.ids[-1])
        for path in (repo.root / "sources/prod/restores").rglob("*.*"):
            path.write_bytes(b"spoiled")
        repo.run("list")
        repo.run("status")
        repo.run("verify", "latest")
        repo.run("check")


class TestStateDirectory:
    @pytest.fixture
    def state(self, repo: Filled) -> Path:
        return repo.home / "state"

    def test_is_shown_in_place_of_the_repository(self, repo: Filled, state: Path) -> None:
        restore_id = proven(state_place(repo.place(), state, create=True), repo.ids[-1], drill=True)
        before = repo.tree()
        assert repo.json("receipts", "list")["restores"] == []
        (line,) = repo.json("receipts", "list", "--state-dir", str(state))["restores"]
        assert line["id"] == restore_id
        assert f"{restore_id}: proven" in repo.run("receipts", "show", "latest", "--state-dir", "state").stdout
        assert "drill: proven" in repo.run("list", env={"LOGKEEP_RESTORE_STATE_DIR": str(state)}).stdout
        assert repo.tree() == before

    def test_one_that_is_not_there(self, repo: Filled) -> None:
        assert repo.run("receipts", "list", "--state-dir", "nowhere", code=41).stderr
        repo.run("list", "--state-dir", "nowhere")
        assert (
            json.loads(repo.run("status", "--json", "--state-dir", "nowhere").stdout)["sources"][0]["last_restore"]
            is None
        )
