"""Groups come back with the records: a real member reads next exactly what it would have read next before."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.integration.kafka.restore.scene import Scene, group_positions, member, positions, stored, troubles, write
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_view_of_configs import topic_names
from tests.support.kafka.group_topic import ROWS, Row, commit, next_records, write_rows
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place

pytestmark = pytest.mark.xdist_group("kafka-restore")
TOPICS = ("rows-a", "rows-b")
GROUPS = ("row-readers", "row-others")
EXPIRED = "the source had already deleted its next record"
BEYOND = "it had read further than what was restored"
LAST = Row("on a record of the last partition", 2, 2)
WHOLE = [(p, row) for p, row in enumerate(ROWS) if row.until == 1000]
WHOLE.append((len(ROWS), LAST))
"""Rows that are about an earlier end come back whole here; they are tested with --until-offset."""


@dataclass(frozen=True)
class Backed:
    """Two topics with every row of the table, two groups over them, and a backup."""

    scene: Scene
    committed: Mapping[str, Mapping[tuple[str, int], tuple[int, str]]]


@pytest.fixture(scope="module")
def backed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory
) -> Backed:
    repo = Filled(tmp_path_factory.mktemp("groups") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    scene = Scene(kafka, target, topics, repo)
    for topic in TOPICS:
        write_rows(kafka.bootstrap, topics, topic)
    topics.create("rows-elsewhere")
    everywhere = {(t, p): row.committed for t in TOPICS for p, row in enumerate((*ROWS, LAST))}
    commit(kafka.bootstrap, "row-readers", {**everywhere, ("rows-elsewhere", 0): 0})
    others = {log: 19 if log[1] == 0 else offset for log, offset in everywhere.items() if log[0] == "rows-b"}
    commit(kafka.bootstrap, "row-others", others, "a note of its own ü")
    scene.back_up("rows-.*")
    return Backed(scene, {group: group_positions(kafka, group) for group in GROUPS})


def _next(rows: list[tuple[int, Row]], topics: Mapping[str, str]) -> dict[tuple[str, int], str]:
    return {
        (new, p): "new" if row.next is None else f"{old}/{p}/{row.next}"
        for old, new in topics.items()
        for p, row in rows
    }


def _kept(partition: int, committed: int) -> int:
    """What is committed where offsets are kept: the same, inside of the log."""
    name = ROWS[partition].name if partition < len(ROWS) else ""
    return {"on an expired record": 10, "beyond the cut": 20}.get(name, committed)


def _write_more(scene: Scene, topics: list[str]) -> None:
    more = Matrix(scene.target)
    for topic in topics:
        for p in range(len(ROWS) + 1):
            write(more, topic, ["new"], p)


def _judged(scene: Scene, topics: Mapping[str, str], rows: list[tuple[int, Row]]) -> None:
    _write_more(scene, list(topics.values()))
    found = next_records(scene.target.bootstrap, "row-readers", list(topics.values()), len(topics) * (len(ROWS) + 1))
    expected = _next(rows, topics)
    assert {log: found[log] for log in expected} == expected
    other = next_records(scene.target.bootstrap, "row-others", [topics["rows-b"]], len(ROWS) + 1)
    assert other[topics["rows-b"], 0] == "rows-b/0/19"
    assert other[topics["rows-b"], len(ROWS)] == f"rows-b/{len(ROWS)}/2"


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_every_row_in_both_modes(backed: Backed, offsets: str) -> None:
    """Renamed, two groups, two topics; metadata kept; then rolled back: groups that were not there are gone again."""
    scene, new = backed.scene, {t: f"{offsets}.{t}" for t in TOPICS}
    before = positions(scene.target)
    done = scene.restore(
        "--offsets",
        offsets,
        "--topics",
        "rows-[ab]",
        "--rename",
        f"s/^/{offsets}./",
        "--groups",
        "row-(readers|others)",
        code=2,
    )
    assert (done["verdict"], done["offsets"], done["group_names"]) == ("proven", offsets, sorted(GROUPS))
    assert [row["reread"] for row in done["groups"]] == [0] * len(done["groups"])
    assert len(troubles(done)) == len({(f["where"], f["what"]) for f in troubles(done)}), "each is said once"
    odd = {(f["where"], f["what"].rpartition(": ")[2]) for f in troubles(done)}
    assert odd == {(f"group {g}", what) for g in GROUPS for what in (EXPIRED, BEYOND)}, "as `kafka groups restore` does"
    left = {(r["topic"], r["partition"]): r["detail"] for r in done["groups"] if r["offset"] is None}
    assert left == {("rows-elsewhere", 0): "the topic was not restored"}
    for group, committed in backed.committed.items():
        found = group_positions(scene.target, group)
        notes = {(new[t], p): note for (t, p), (_, note) in committed.items() if t in new}
        assert {log: found[log][1] for log in notes} == notes
        if offsets == "preserve":
            kept = {(new[t], p): _kept(p, offset) for (t, p), (offset, _) in committed.items() if t in new}
            assert {log: found[log][0] for log in kept} == kept
    _judged(scene, new, WHOLE)

    restore = str(done["restore"])
    undone = scene.commands.json(
        "kafka", "groups", "rollback", restore, "-y", "--bootstrap-servers", scene.target.bootstrap
    )
    assert undone["groups"] == len(GROUPS)
    assert positions(scene.target) == before


def test_positions_that_were_there_are_remembered_and_put_back(backed: Backed) -> None:
    """Into topics that others use, behind their records; a group that stood there is moved, and moved back."""
    scene, there = backed.scene, Matrix(backed.scene.target)
    name = there.create("used", len(ROWS) + 1)
    for p in range(len(ROWS) + 1):
        write(there, name, ["old"] * 3, p)
    commit(scene.target.bootstrap, "row-readers", {(name, 0): 1, (name, 3): 2}, "before")
    before = positions(scene.target)
    words = ("--topics", "rows-a", "--rename", "rows-a=used", "--into-existing", "--groups", "row-readers")
    planned = scene.restore(*words, "--dry-run", code=2)
    assert (planned["offsets"], planned["verdict"]) == ("translate", "planned")
    foreseen = {r["partition"]: r for r in planned["groups"] if r["topic"] == name}
    assert {p: foreseen[p]["previous_offset"] for p in (0, 1, 3)} == {0: 1, 1: None, 3: 2}
    assert {r["offset"] for r in foreseen.values()} == {None}, "records are not there yet: nobody knows"
    assert "is known when the records are restored" in foreseen[0]["detail"]
    done = scene.restore(*words, code=2)
    assert {p: r["exact"] for p, r in foreseen.items()} == {
        r["partition"]: r["exact"] for r in done["groups"] if r["topic"] == name
    }
    assert (done["offsets"], done["verdict"]) == ("translate", "proven")
    rows = {r["partition"]: r for r in done["groups"] if r["topic"] == name}
    assert {p: rows[p]["previous_offset"] for p in (0, 1, 3)} == {0: 1, 1: None, 3: 2}
    _write_more(scene, [name])
    found = next_records(scene.target.bootstrap, "row-readers", [name], len(ROWS) + 1)
    expected = _next(WHOLE, {"rows-a": name})
    assert {log: found[log] for log in expected} == expected
    scene.commands.json(
        "kafka", "groups", "rollback", str(done["restore"]), "-y", "--bootstrap-servers", scene.target.bootstrap
    )
    assert positions(scene.target) == before


def test_a_group_beyond_an_earlier_end_waits_for_what_comes_next(backed: Backed) -> None:
    """Rows about a cut: the group had read more than what comes back."""
    scene = backed.scene
    rows = [(p, row) for p, row in enumerate(ROWS) if row.until < 1000]
    cuts = [word for p, row in rows for word in ("--until-offset", f"rows-a:{p}={row.until}")]
    for offsets in ("preserve", "translate"):
        name = f"earlier-{offsets}"
        done = scene.restore(
            "--topics", "rows-a", "--rename", f"rows-a={name}", "--offsets", offsets, *cuts, "--groups", "row-readers",
            code=2,
        )  # fmt: skip
        assert done["verdict"] == "proven"
        _write_more(scene, [name])
        found = next_records(scene.target.bootstrap, "row-readers", [name], len(ROWS) + 1)
        expected = _next(rows, {"rows-a": name})
        assert {log: found[log] for log in expected} == expected


def test_a_group_that_is_read_by_stops_everything_before_it_begins(backed: Backed) -> None:
    scene, live = backed.scene, Matrix(backed.scene.target)
    live.create("busy")
    with member(scene.target, "row-readers", "busy", "till-7"):
        words = ("--topics", "rows-a", "--rename", "rows-a=never")
        before = topic_names(scene.target), stored(scene.repo)
        said = scene.commands.error(*scene.restore_words(*words, "--yes"), code=31)
        assert "row-readers (till-7 at 127.0.0.1)" in said
        assert (topic_names(scene.target), stored(scene.repo)) == before
        done = scene.restore(*words, "--groups", "row-others", "--dry-run", code=0)
        assert done["group_names"] == []
    assert scene.restore(*words, "--dry-run", code=2)["group_names"] == ["row-readers"]


def test_offsets_as_they_are_where_a_restore_kept_them(scene: Scene) -> None:
    """There is no record to compare; the receipt shows that offsets mean the same."""
    topic = scene.topics.create("kept-empty", 1)
    commit(scene.kafka.bootstrap, "kept-waiting", {(topic, 0): 0})
    backup = scene.back_up(topic)
    assert scene.restore("--offsets", "preserve")["verdict"] == "proven"
    words = ("restore", "--backup", str(backup), "--bootstrap-servers", scene.target.bootstrap, "--yes")
    done = scene.commands.json("kafka", "groups", *words)
    assert [(row["topic"], row["exact"]) for row in done["positions"]] == [(topic, True)]
