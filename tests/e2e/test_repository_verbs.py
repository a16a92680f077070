"""The verbs of a repository, called as a user calls them."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from logkeep.cli.frame.catalogue import VERBS
from logkeep.errors import Damaged
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.backup import begin
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.freshness import put_freshness, read_freshness
from logkeep.repository.chain.write_session import Writing, writing
from tests.crash.points import KILLED, in_child
from tests.support.cli.filled_repository import ENDS, Filled, backed_up, document, empty
from tests.support.cli.processes import ROOT, logkeep
from tests.support.scripted.backup import expected, restored

SEGMENT = "sources/prod/topics/scripted/history-1/partition=0/*.log"
COMMIT = "sources/prod/commits/*1.json"
AT_ONCE = ("--gc-age", "0s", "--gc-interval", "0s")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def begun(repo: Filled, session: Writing, wanted: int | None = None) -> int:
    facts = ensure_source(session.place, "scripted", {"id": "s-1"}, utc_now())
    return begin(session, facts, wanted=None if wanted is None else BackupId(wanted)).id


def interrupted(repo: Filled) -> None:
    """A backup whose process was killed in the middle."""

    def start_and_die() -> None:
        with writing(repo.place(), "backup", utc_now, random_token) as session:
            begun(repo, session)
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(start_and_die) == KILLED


@pytest.fixture
def held(repo: Filled) -> Iterator[Writing]:
    """This process works on the source while the test runs."""
    with writing(repo.place(), "backup", utc_now, random_token) as session:
        yield session


def counted(repo: Filled) -> dict[str, object]:
    """The size of the source as `status` reports it, from the directory."""
    sizes = [path.stat().st_size for path in (repo.root / "sources/prod").rglob("*") if path.is_file()]
    return {"objects": len(sizes), "stored_bytes": sum(sizes), "complete": True, "garbage_marked_at": None}


class TestInit:
    def test_creates_once(self, tmp_path: Path) -> None:
        repo = Filled(tmp_path)
        first = repo.json("init")
        assert first["commits_safe"]
        assert first["repository"]
        before = repo.tree()
        again = repo.run("init", code=40)
        assert "there is already a repository" in again.stderr
        assert again.stdout == ""
        assert repo.tree() == before

    def test_a_used_repository_is_named_as_one(self, repo: Filled) -> None:
        before = repo.tree()
        assert "there is already a repository" in repo.run("init", code=40).stderr
        assert repo.tree() == before

    def test_a_directory_of_other_things_is_left_alone(self, tmp_path: Path) -> None:
        repo = Filled(tmp_path)
        repo.root.mkdir()
        (repo.root / "letter.txt").write_text("dear")
        assert "letter.txt" in repo.run("init", code=40).stderr
        assert [p.name for p in repo.root.iterdir() if not p.name.startswith(".")] == ["letter.txt"]

    def test_a_dry_run_makes_nothing(self, tmp_path: Path) -> None:
        repo = Filled(tmp_path)
        assert repo.json("init", "-n")["dry_run"]
        assert not repo.root.exists()
        repo.root.mkdir()
        assert repo.json("init", "-n")["commits_safe"]
        assert {name.split("/")[0] for name in repo.tree()} <= {".partial"}, "only the store's own scratch directory"


class TestCheck:
    """It ends with the code of the runs that would fail, and never with 1, which is for what nobody foresaw."""

    def test_no_repository(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        found = Filled(tmp_path).json("check", "-r", f"file://{tmp_path / 'empty'}", code=41)
        assert [(c["what"], c["exit_code"]) for c in found["checks"] if c["state"] == "FAIL"] == [("repository", 41)]

    @pytest.mark.parametrize("damage", (flip, Path.unlink), ids=("flipped", "lost"))
    def test_a_broken_chain(self, repo: Filled, damage: Callable[[Path], object]) -> None:
        damage(sorted(repo.root.glob("sources/prod/commits/*.json"))[-1])
        found = repo.json("check", code=10)
        assert [(c["what"], c["exit_code"]) for c in found["checks"] if c["state"] == "FAIL"] == [("source prod", 10)]


class TestList:
    def test_text_and_json_show_the_same(self, repo: Filled) -> None:
        shown = repo.run("list")
        lines = shown.stdout.splitlines()
        assert lines[0].split()[:3] == ["SOURCE", "ID", "STATE"]
        assert [line.split()[:3] for line in lines[1:]] == [["prod", str(i), "completed"] for i in repo.ids]
        listed = repo.json("list")
        assert [row["id"] for row in listed["backups"]] == repo.ids
        assert [row["records"] for row in listed["backups"]] == [sum(e.values()) for e in ENDS]
        assert listed["sources"] == ["prod"]

    def test_an_empty_repository(self, tmp_path: Path) -> None:
        repo = empty(tmp_path)
        assert repo.run("list").stdout == f"no backups in {repo.url}\n"
        assert repo.json("list")["backups"] == []

    def test_reading_changes_nothing(self, repo: Filled) -> None:
        before = repo.tree()
        for words in (("list",), ("info", "latest"), ("status",), ("unlock",), ("hold", "latest", "-n")):
            repo.run(*words)
        assert repo.tree() == before


class TestInfo:
    def test_number_prefix_and_latest_mean_one_backup(self, repo: Filled) -> None:
        last = repo.ids[-1]
        for text in (str(last), str(last)[:8], "latest"):
            shown = repo.json("info", text)
            assert (shown["id"], shown["state"], shown["kind"]) == (last, "completed", "scripted")
            assert {log["log"]: log["end"] for log in shown["logs"]} == {"scripted/0": 40, "scripted/1": 38}
        assert f"backup {last}: completed" in repo.run("info", "latest").stdout

    def test_an_ambiguous_prefix_lists_the_candidates(self, repo: Filled) -> None:
        shown = repo.run("info", str(repo.ids[0])[:4], code=40)
        assert all(str(i) in shown.stderr for i in repo.ids)
        assert shown.stdout == ""

    @pytest.mark.parametrize("text", ("99", "yesterday", "-1"))
    def test_an_unknown_id(self, repo: Filled, text: str) -> None:
        error = json.loads(repo.run("info", "--json", "--", text, code=40).stderr)
        assert error["error"] == "unknown-backup"
        assert text in error["message"]

    def test_latest_of_nothing(self, tmp_path: Path) -> None:
        assert "no backup yet" in empty(tmp_path).run("info", "latest", code=40).stderr


class TestGroup:
    """The same id in two sources is one group backup."""

    def test_completed_when_all_are(self, tmp_path: Path) -> None:
        repo = empty(tmp_path)
        for source in ("a", "b"):
            backed_up(repo.place(source), {0: 5}, wanted=7)
        shown = repo.json("info", "7")
        assert (shown["state"], [m["source"] for m in shown["members"]]) == ("completed", ["a", "b"])

    def test_failed_when_any_is(self, tmp_path: Path) -> None:
        repo = empty(tmp_path)
        backed_up(repo.place("a"), {0: 5}, wanted=7)
        with writing(repo.place("b"), "backup", utc_now, random_token) as session:
            facts = ensure_source(session.place, "scripted", {"id": "s-1"}, utc_now())
            begin(session, facts, wanted=BackupId(7)).fail("the disk burnt")
        shown = repo.json("info", "7")
        assert (shown["state"], [m["state"] for m in shown["members"]]) == ("failed", ["completed", "failed"])
        assert "the disk burnt" in repo.run("info", "7").stdout

    def test_ongoing_while_any_is(self, tmp_path: Path) -> None:
        repo = empty(tmp_path)
        backed_up(repo.place("a"), {0: 5}, wanted=7)
        with writing(repo.place("b"), "backup", utc_now, random_token) as session:
            begun(repo, session, 7)
            assert repo.json("info", "7")["state"] == "ongoing"
            assert repo.json("info", "7", "--source", "a")["state"] == "completed"
        assert repo.json("info", "7")["state"] == "failed", "its owner has gone"


class TestVerify:
    @pytest.mark.parametrize("flags", ((), ("--level", "data"), ("--level", "data", "--sample", "1/2")))
    def test_a_whole_backup_is_good(self, repo: Filled, flags: tuple[str, ...]) -> None:
        shown = repo.json("verify", *flags)
        assert (shown["verdict"], shown["id"], shown["findings"]) == ("good", repo.ids[-1], [])
        assert repo.json("list")["backups"][-1]["health"] == "good"
        assert shown["sample"] == ("1/2" if "--sample" in flags else "1/1")
        assert shown["objects"] == len(list(repo.root.rglob("*.log")))

    def test_a_flipped_segment_is_named(self, repo: Filled) -> None:
        path = repo.file(SEGMENT)
        flip(path)
        assert repo.json("verify")["verdict"] == "good", "names and sizes are right"
        for words in (("latest",), (str(repo.ids[0]),)):
            shown = repo.json("verify", *words, "--level", "data", code=10)
            assert [f["where"] for f in shown["findings"]] == [repo.name(path)]
        assert repo.name(path) in repo.run("verify", "--level", "data", code=10).stdout
        assert {row["health"] for row in repo.json("list")["backups"]} == {"damaged"}
        assert repo.json("status", code=2)["sources"][0]["damaged"] == repo.ids

    def test_a_weaker_run_hides_no_deeper_one(self, repo: Filled) -> None:
        """`list` shows the deepest good verification: neither names and sizes nor a sample replace it."""
        repo.run("verify", "--level", "data", "--sample", "1/2")
        assert repo.json("list")["backups"][-1]["verified_level"] == "files", "a sample counts as the shallowest"
        repo.run("verify", "--level", "data")
        before = repo.json("list")["backups"][-1]
        for words in ((), ("--level", "data", "--sample", "1/2")):
            repo.run("verify", *words)
            row = repo.json("list")["backups"][-1]
            assert (row["health"], row["verified_level"]) == ("good", "data")
            assert (row["verified_at"], row["verified"]) == (before["verified_at"], before["verified"])
        assert row["verified"].split()[1] == "data"
        for verb in (("list",), ("info", "latest")):
            assert "data, just now" in repo.run(*verb).stdout
        told = repo.json("status")["sources"][0]
        assert (told["last_verified_at"], told["last_verified_level"]) == (row["verified_at"], "data")

    def test_damage_remains_until_a_run_as_deep_finds_none(self, repo: Filled) -> None:
        path = repo.file(SEGMENT)
        flip(path)
        repo.run("verify", "--level", "data", code=10)
        flip(path)
        for words in ((), ("--level", "data", "--sample", "1/2")):
            shown = repo.run("verify", *words, code=2).stdout
            assert "damage that an earlier verification found at level data remains" in shown
            assert repo.json("verify", *words, code=2)["health"] == "damaged"
            assert "damaged: data, just now" in repo.run("list").stdout
        assert repo.json("verify", "--level", "data")["health"] == "good"
        assert repo.json("list")["backups"][-1]["health"] == "good"

    def test_a_lost_segment_is_named(self, repo: Filled) -> None:
        path = repo.file(SEGMENT)
        path.unlink()
        assert repo.name(path) in repo.run("verify", code=10).stdout

    @pytest.mark.parametrize("damage", (flip, Path.unlink), ids=("flipped", "lost"))
    @pytest.mark.parametrize("latest", (True, False), ids=("latest", "id"))
    def test_a_broken_chain_is_named(self, repo: Filled, damage: object, latest: bool) -> None:
        path, wanted = repo.file(COMMIT), "latest" if latest else str(repo.ids[-1])
        assert callable(damage)
        damage(path)
        done = repo.run("verify", wanted, code=10)
        where = repo.name(path) if path.exists() else "sources/prod/commits/"
        assert where in done.stdout + done.stderr
        for words in (("list",), ("prune", "--keep-last", "1", "-y"), ("info", "latest")):
            assert "sources/prod/commits/" in repo.run(*words, code=10).stderr

    def test_an_end_of_the_chain_that_was_cut_off_is_told(self, repo: Filled) -> None:
        sorted(repo.root.glob("sources/prod/commits/*.json"))[-1].unlink()
        assert "was committed before" in repo.run("list", code=2).stdout
        assert repo.json("verify", code=10)["verdict"] == "damaged"
        for words in (("prune", "--keep-last", "1", "-n"), ("prune", "--keep-last", "1", "-y")):
            assert "was committed before" in repo.run(*words, code=10).stderr


class TestStatus:
    def test_objective(self, repo: Filled) -> None:
        assert not repo.json("status", "--max-age", "2d")["sources"][0]["breached"]
        assert repo.json("status", "--max-age", "1h", code=60)["sources"][0]["breached"]
        assert repo.run("status", "--max-age", "1h", code=60).stdout.startswith("FAIL  prod")

    def test_the_age_counts_from_the_last_look_at_the_newest_backup(self, repo: Filled) -> None:
        newest, now = repo.ids[-1], utc_now()
        for wanted in (("--max-lag", "5"), ("--max-age", "1h", "--max-lag", "5")):
            assert repo.json("status", *wanted, code=60)["sources"][0]["lag_offsets"] is None, "no look is known"
        put_freshness(repo.place(), now, newest, 5)
        told = repo.json("status", "--max-age", "1h", "--max-lag", "5")["sources"][0]
        assert (told["newest_good"], told["lag_offsets"], told["age_seconds"] < 600) == (newest, 5, True)
        assert "lag 5 offsets" in repo.run("status").stdout
        repo.run("status", "--max-lag", "4", code=60)
        put_freshness(repo.place(), now - timedelta(hours=2), newest, 0, 600)
        stale = repo.json("status", "--max-lag", "5", code=60)["sources"][0]
        assert (stale["lag_offsets"], len(stale["warnings"])) == (None, 1), "nobody has looked for two hours"
        put_freshness(repo.place(), now, repo.ids[-2], 0)
        repo.run("status", "--max-age", "1h", code=60)
        put_freshness(repo.place(), now + timedelta(days=3), newest, 0)
        repo.run("status", "--max-lag", "5", code=60)

    def test_a_look_is_advice_and_nothing_else(self, repo: Filled) -> None:
        put_freshness(repo.place(), utc_now(), repo.ids[-1], 0)
        path = repo.root / layout.freshness("prod")
        for data in (path.read_bytes()[:-9], b"", b"{}\n", path.read_bytes().replace(b"Z", b"")):
            path.write_bytes(data)
            assert read_freshness(repo.place()) is None
        assert repo.json("status")["sources"][0]["last_look"] is None
        repo.run("verify", "--level", "data")
        repo.run("prune", "--keep-last", "5", *AT_ONCE, "-y")
        assert path.exists(), "it is never garbage"
        assert repo.json("repair", "-n")["steps"] == []

    def test_an_empty_repository_has_no_source(self, tmp_path: Path) -> None:
        repo = empty(tmp_path)
        assert "no sources" in repo.run("status").stdout
        repo.run("status", "--max-lag", "5", code=60)

    def test_an_interrupted_backup_is_shown(self, repo: Filled) -> None:
        interrupted(repo)
        left = repo.ids[-1]
        assert repo.json("status", code=2)["sources"][0]["interrupted"] == [left]
        assert repo.json("info", str(left))["state"] == "failed"
        assert "can be resumed" in repo.run("list").stdout

    def test_what_runs_is_shown(self, repo: Filled, held: Writing) -> None:
        running = begun(repo, held)
        assert f"process {os.getpid()}" in repo.json("status")["sources"][0]["running"]
        assert repo.json("list")["backups"][-1]["state"] == "ongoing"
        assert repo.json("info", str(running))["state"] == "ongoing"


class TestDelete:
    def test_a_dry_run_tells_the_plan_and_changes_nothing(self, repo: Filled) -> None:
        before, ids = repo.tree(), repo.ids
        planned = repo.json("delete", str(ids[0]), "--dry-run")
        assert repo.tree() == before
        done = repo.json("delete", str(ids[0]), "--yes")
        assert planned.pop("dry_run") is not done.pop("dry_run")
        assert planned == done
        assert repo.listed() == ids[1:]

    def test_the_last_good_backup_stays(self, repo: Filled) -> None:
        error = repo.run("delete", *map(str, repo.ids), "--yes", code=40).stderr
        assert "last good backup" in error
        repo.run("delete", *map(str, repo.ids[:-1]), "--yes")
        assert "last good backup" in repo.run("delete", "latest", "--yes", code=40).stderr
        assert len(repo.listed()) == 1

    def test_held_backups_stay(self, repo: Filled) -> None:
        first = str(repo.ids[0])
        repo.run("hold", first, "--reason", "audit")
        error = repo.run("delete", first, "--yes", code=40).stderr
        assert "audit" in error
        assert f"logkeep release {first}" in error

    def test_nobody_to_ask(self, repo: Filled) -> None:
        before = repo.tree()
        for words in (("delete", str(repo.ids[0])), ("prune", "--keep-last", "1")):
            assert "pass --yes" in repo.run(*words, code=3).stderr
        assert repo.tree() == before

    def test_another_run_holds_the_source(self, repo: Filled, held: Writing) -> None:
        before = repo.tree()
        error = repo.run("delete", str(repo.ids[0]), "--yes", code=50).stderr
        assert f"process {os.getpid()}" in error
        repo.run("delete", str(repo.ids[0]), "--dry-run")
        assert repo.tree() == before


class TestPrune:
    def test_every_verdict_has_its_reason(self, repo: Filled) -> None:
        shown = repo.run("prune", "--keep-last", "1", "--keep-within", "4d", "--dry-run").stdout
        rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in shown.splitlines()[1:6]}
        assert [rows[str(i)][0] for i in repo.ids] == ["remove"] * 3 + ["keep"] * 2
        assert all(why for _, why in rows.values())

    @pytest.mark.parametrize("rules", (("--keep-last", "2"), ("--keep-days", "4"), ("--keep-last", "2", *AT_ONCE)))
    def test_a_dry_run_equals_the_run(self, repo: Filled, rules: tuple[str, ...]) -> None:
        before = repo.tree()
        planned = repo.json("prune", *rules, "--dry-run")
        assert repo.tree() == before
        done = repo.json("prune", *rules, "--yes")
        del planned["dry_run"], done["dry_run"]
        assert planned == done
        assert done["deleted"]

    def test_topics_are_trimmed_only_where_a_source_has_some(self, repo: Filled) -> None:
        before = repo.tree()
        for words in (("--source-retention",), ("--topic-retention", ".*=30d")):
            shown = repo.run("prune", *words, "--yes", code=40).stderr
            assert "only backups of a Kafka cluster have topics" in shown
        assert "has no effect without" in repo.run("prune", "--less-than-source", code=40).stderr
        assert "must be RE=TIME" in repo.run("prune", "--topic-retention", "orders", code=40).stderr
        assert repo.tree() == before
        (repo.home / "logkeep.yaml").write_text("retention:\n  source: true\n  topics:\n    'a.*': 30d,1GiB\n")
        (repo.home / "logkeep.yaml").chmod(0o600)
        named = ("--config", str(repo.home / "logkeep.yaml"))
        assert repo.json("prune", "--keep-last", "9", "--dry-run", *named)["topics"] == []
        rows = {each["key"]: each["value"] for each in repo.json("config", "show", *named)["settings"]}
        assert rows["retention.topics"] == "'a.*=30d,1GiB'"

    def test_without_a_rule_nothing_goes(self, repo: Filled) -> None:
        shown = repo.json("prune")
        assert shown["deleted"] == []
        assert repo.listed() == repo.ids

    def test_space_is_freed_at_once_and_the_rest_is_whole(self, repo: Filled) -> None:
        ids, before = repo.ids, repo.size()
        shown = repo.json("prune", "--keep-last", "2", "--yes", *AT_ONCE)
        assert shown["swept_bytes"] > 0
        assert shown["waiting_objects"] == 0
        assert repo.size() < before - shown["swept_bytes"] / 2, "a few small commits were added"
        assert repo.listed() == ids[-2:]
        for backup_id, ends in zip(ids[-2:], ENDS[-2:], strict=True):
            assert repo.json("verify", str(backup_id), "--level", "data")["verdict"] == "good"
            assert restored(repo.place(), backup_id) == expected(ends)
        assert repo.json("prune", *AT_ONCE)["swept_objects"] == 0
        assert [path.name for path in repo.root.iterdir() if path.name.startswith("probe-")] == []

    def test_what_is_freed_later_is_shown_with_time_and_reason(self, repo: Filled) -> None:
        """First all garbage is too young, then its mark is, then it is deleted; `status` counts what is marked."""
        assert repo.json("status")["size"] == {**counted(repo), "garbage_objects": 0, "garbage_bytes": 0}
        shown = repo.run("prune", "--keep-last", "1", "-n").stdout
        assert "would be freed now    nothing\n" in shown
        assert "by two prunes, from 20" in shown
        assert "one marks what is 1 d old (--gc-age)" in shown
        soon = ("--keep-last", "1", "--gc-age", "0s")
        (later,) = repo.json("prune", *soon, "-y")["freed_later"]
        wait = datetime.fromisoformat(later["first_at"]) - utc_now()
        assert (later["phase"], timedelta(hours=3) < wait <= timedelta(hours=4)) == ("marked", True)
        size = repo.json("status")["sources"][0]["size"]
        assert (size["garbage_objects"], size["garbage_bytes"]) == (later["objects"], later["stored_bytes"])
        assert f"garbage             {later['objects']} objects, " in repo.run("status").stdout
        freed = repo.run("prune", *soon, "--gc-interval", "0s", "-y").stdout
        assert f"freed now    {later['objects']} objects, " in freed
        assert "freed later  nothing" in freed
        assert repo.json("status")["size"]["garbage_marked_at"] is None

    def test_a_backup_without_its_manifest_is_deleted_and_the_next_one_goes_on(self, repo: Filled) -> None:
        """The error of the next backup names the command that helps."""
        lost = repo.ids[-1]
        entry = read_chain(repo.place()).completed[-1]
        (repo.root / layout.manifest("prod", BackupId(lost), entry.manifest.token)).unlink()
        with pytest.raises(Damaged, match="the manifest is missing") as blocked:
            backed_up(repo.place(), ENDS[-1])
        assert f"`logkeep delete {lost}` removes this backup" in blocked.value.remedy
        repo.run("verify", str(lost), code=10)
        repo.run("delete", str(lost), "--yes")
        new = backed_up(repo.place(), ENDS[-1])
        assert repo.json("verify", str(new), "--level", "data")["verdict"] == "good"


class TestPins:
    def test_hold_and_release(self, repo: Filled) -> None:
        first, before = str(repo.ids[0]), repo.tree()
        assert repo.json("hold", first, "--reason", "audit", "-n")["changed"]
        assert repo.tree() == before
        assert repo.json("hold", first, "--reason", "audit")["held"] == "audit"
        assert not repo.json("hold", first, "--reason", "audit")["changed"]
        assert "held: audit" in repo.run("list").stdout
        kept = repo.json("prune", "--keep-last", "1", "-n")["decisions"][0]
        assert kept["keep"]
        assert "audit" in " ".join(kept["reasons"])
        assert repo.run("release", first).stdout == f"backup {first} of prod is released\n"
        assert repo.json("release", first)["held"] is None
        assert not repo.json("prune", "--keep-last", "1", "-n")["decisions"][0]["keep"]

    def test_a_run_does_not_keep_anybody_from_pinning(self, repo: Filled, held: Writing) -> None:
        assert repo.json("hold", "latest")["changed"]


class TestUnlock:
    def test_takes_the_lease_from_its_holder(self, repo: Filled, held: Writing) -> None:
        before = repo.tree()
        shown = repo.json("unlock", "--dry-run")
        assert (shown["standing"], shown["unlocked"]) == ("held", False)
        assert f"process {os.getpid()}" in shown["holder"]
        repo.run("unlock", code=3)
        assert repo.tree() == before
        repo.run("prune", "--keep-last", "1", "--yes", code=50)
        assert repo.json("unlock", "--yes")["unlocked"]
        assert repo.json("prune", "--keep-last", "1", "--yes")["deleted"]
        assert repo.json("unlock")["holder"] is None

    def test_the_lease_of_a_dead_process_holds_nobody_up(self, repo: Filled) -> None:
        interrupted(repo)
        assert repo.json("unlock", "-n")["standing"] == "owner_dead"
        assert repo.json("prune", "--keep-last", "1", "--yes")["deleted"]


class TestRepair:
    def _mended(self, repo: Filled, where: str, *flags: str) -> None:
        """The plan names the object, the run does what was planned, then nothing is left to do."""
        before = repo.tree()
        planned = repo.json("repair", *flags, "--dry-run", code=2)
        assert where in [step["where"] for step in planned["steps"]]
        repo.run("repair", *flags, code=3)
        assert repo.tree() == before
        assert repo.json("repair", *flags, "--yes", code=2)["steps"] == planned["steps"]
        assert repo.json("repair")["steps"] == []
        assert repo.json("verify", "--level", "data")["verdict"] == "good"

    def test_nothing_to_do(self, repo: Filled) -> None:
        before = repo.tree()
        assert "nothing to repair" in repo.run("repair").stdout
        assert repo.tree() == before

    @pytest.mark.parametrize(
        "name", ("logkeep.json", "logkeep.copy.json", "sources/prod/source.json", "leases/prod.json")
    )
    def test_documents(self, repo: Filled, name: str) -> None:
        flip(repo.root / name)
        self._mended(repo, name)

    def test_checkpoints(self, repo: Filled) -> None:
        repo.run("prune", "--keep-last", "4", "--yes", *AT_ONCE)
        path = repo.file("sources/prod/checkpoints/*.json")
        flip(path)
        self._mended(repo, repo.name(path))

    def test_lost_commits_only_when_told(self, repo: Filled) -> None:
        ids = repo.ids
        repo.file("sources/prod/commits/*3.json").unlink()
        for flags in ((), ("-n",), ("-y",)):
            assert "--accept-loss" in repo.run("repair", *flags, code=10).stderr
        self._mended(repo, "sources/prod/commits/", "--accept-loss")
        assert repo.listed() == ids


CALLS = {
    "init": ("-n",),
    "check": (),
    "list": (),
    "info": ("latest",),
    "verify": (),
    "status": (),
    "delete": ("2", "-n"),
    "prune": ("-n",),
    "hold": ("latest",),
    "release": ("latest",),
    "unlock": (),
    "repair": (),
    "config show": (),
    "config validate": (),
    "store probe": ("repo",),
    "completion": ("bash",),
    "version": (),
}
"""Every verb but those that need a server of their own."""

ELSEWHERE = (
    "app backup",
    "app serve",
    "app checkpoint",
    "app restore",
    "app simulate",
    "app status",
    "backup-set status",
    "backup-set take",
    "demo",
    "drill",
    "kafka backup",
    "kafka dataset info",
    "kafka dataset prune",
    "kafka dataset reindex",
    "kafka dataset verify",
    "kafka export",
    "kafka fold",
    "kafka generations",
    "kafka generations cancel",
    "kafka generations new",
    "kafka groups",
    "kafka groups restore",
    "kafka groups rollback",
    "kafka import",
    "kafka optimize",
    "kafka restore",
    "kafka restore abort",
    "kafka salvage",
    "kafka schemas check",
    "kafka schemas list",
    "kafka schemas restore",
    "kafka schemas show",
    "kafka show",
    "receipts list",
    "receipts show",
    "sql",
    "zeebe backup",
    "zeebe export",
    "zeebe import",
    "zeebe list",
    "zeebe verify",
    "zookeeper backup",
    "zookeeper diff",
    "zookeeper export",
    "zookeeper history",
    "zookeeper import",
    "zookeeper log",
    "zookeeper optimize",
    "zookeeper repair",
    "zookeeper restore",
    "zookeeper restore plan",
    "zookeeper restore survey",
    "zookeeper restore-subtree",
)
"""Called in test_demo.py, test_salvage.py, test_receipts.py, zookeeper/, and in
tests/integration/kafka_{backup,restore}."""


def test_every_verb_is_called_here_or_elsewhere() -> None:
    assert sorted([*CALLS, *ELSEWHERE]) == sorted(e.words for e in VERBS)


@pytest.mark.parametrize("words", sorted(CALLS))
def test_json_is_one_document_and_stderr_has_the_rest(repo: Filled, tmp_path: Path, words: str) -> None:
    arguments = [str(repo.ids[1]) if a == "2" else a for a in CALLS[words]]
    if words == "init":
        repo = Filled(tmp_path)
    log = ("--log-level", "debug") if words not in {"completion", "version"} else ()
    done = repo.run(*words.split(), *arguments, "--json", *log)
    assert document(done)["verb"] == words
    assert "{" not in done.stderr, "only log lines"


@pytest.mark.parametrize("words", sorted([*CALLS, *ELSEWHERE]))
def test_help_lists_the_exit_codes(tmp_path: Path, words: str) -> None:
    done = logkeep(*words.split(), "--help", home=tmp_path)
    (verb,) = (e.load() for e in VERBS if e.words == words)
    listed = done.stdout.partition("Exit codes:")[2].split("\n")
    assert [int(line.split()[0]) for line in listed if line[:4].strip().isdecimal()] == list(verb.exits)
    assert done.stderr == ""


_FORBID = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", *%r}:
            raise AssertionError(f"{name} must not be loaded here")

sys.meta_path.insert(0, Forbidden())
"""


@pytest.mark.parametrize(
    ("calls", "heavy"),
    (
        ((("list",), ("status",), ("unlock",), ("hold", "latest")), ("pyarrow", "pandas", "numpy", "obstore", "boto3")),
        ((("info", "latest"), ("verify", "--level", "data"), ("prune", "--keep-last", "1", "-y"), ("repair",)), ()),
    ),
    ids=("light", "with-arrow"),
)
def test_no_verb_of_a_repository_starts_java(
    repo: Filled, tmp_path: Path, calls: tuple[tuple[str, ...], ...], heavy: tuple[str, ...]
) -> None:
    guard, bin_dir, met = tmp_path / "guard", tmp_path / "bin", tmp_path / "java-was-started"
    guard.mkdir()
    bin_dir.mkdir()
    (guard / "sitecustomize.py").write_text(_FORBID % (heavy,))
    (bin_dir / "java").write_text(f"#!/bin/sh\ntouch {met}\n")
    (bin_dir / "java").chmod(0o755)
    env = {
        "PYTHONPATH": os.pathsep.join([str(guard), str(ROOT / "src"), str(ROOT)]),
        "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": "",
    }
    for words in calls:
        repo.run(*words, env=env)
    assert not met.exists()
    caught = repo.run("verify", "--level", "data", "--engine", "spark", code=1, env=env)
    assert "must not be loaded here" in caught.stderr, "the trap works"


class TestCompletion:
    def complete(self, repo: Filled, words: str, **env: str) -> list[str]:
        """What bash is offered for the last word."""
        asked = {"_LOGKEEP_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), **env}
        done = logkeep(home=repo.home, env={"LOGKEEP_REPO": repo.url, **asked})
        assert done.stderr == ""
        return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]

    def test_backups_sources_and_topics_of_the_repository(self, repo: Filled) -> None:
        ids = [str(i) for i in sorted(repo.ids, reverse=True)]
        assert self.complete(repo, "logkeep verify ") == ["latest", *ids]
        assert self.complete(repo, f"logkeep hold {ids[0]}") == [ids[0]]
        assert self.complete(repo, "logkeep sql --backup ") == ["latest", *ids]
        assert self.complete(repo, "logkeep app restore ") == ["latest", *ids]
        assert self.complete(repo, "logkeep zeebe verify ") == [], "its ids are those of Zeebe's own store"
        assert self.complete(repo, "logkeep list --source ") == ["prod"]
        assert self.complete(repo, "logkeep info latest --topic ") == ["scripted"]
        assert self.complete(repo, f"logkeep info -r {repo.url} ", LOGKEEP_REPO="") == ["latest", *ids]

    def test_nothing_where_there_is_no_repository(self, repo: Filled) -> None:
        assert self.complete(repo, "logkeep verify ", LOGKEEP_REPO=f"file://{repo.home}/none") == []
        assert self.complete(repo, "logkeep verify ", LOGKEEP_REPO="") == []
