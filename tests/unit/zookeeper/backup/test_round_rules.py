"""The decisions of a backup, by values alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper.names import epoch_of, follows, parse_name
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range, tile
from logkeep.model.segments import Codec, Proof
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.findings import exit_code
from logkeep.zookeeper.backup.log_task import wanted_until
from logkeep.zookeeper.backup.round_rules import MemberProgress, RoundHole, holes, logs_to_read, settled
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, LogFileEnding
from logkeep.zookeeper.model.config_files import gather_config
from logkeep.zookeeper.model.sink import PlacedLog
from logkeep.zookeeper.repo.claims import claim_logs
from logkeep.zookeeper.repo.time_window import within

EPOCH = 1 << 32
NOTHING = "0" * 64
TOKEN = "0123456789abcdef"


def file_of(name: str) -> FoundFile:
    parsed = parse_name(name)
    assert parsed is not None
    return FoundFile(Path(name), parsed, 100, 100)


def standing(**told: int | None) -> MemberProgress:
    usual: dict[str, int | None] = {"newest_snapshot": 5, "fuzzy_end": 8, "last": 9, "cap": 9, "cap_after": 12}
    return MemberProgress(**{**usual, **told})  # type: ignore[arg-type]  # a table of numbers


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, True),
        ({"last": 7, "cap": 7}, False),  # the fuzzy end is not reached
        ({"last": 0, "fuzzy_end": 5, "cap": 5}, True),  # an exact snapshot needs no log
        ({"last": 8}, False),  # the server has processed 9
        ({"last": 8, "cap": None, "cap_after": None}, True),
        ({"cap_after": EPOCH + 1}, False),  # another leader meanwhile
        ({"cap": EPOCH, "cap_after": EPOCH}, True),  # an epoch in which nothing happened yet
        ({"cap": EPOCH + 1, "cap_after": EPOCH + 1}, False),
        ({"newest_snapshot": 20, "fuzzy_end": 20, "cap": 20}, True),  # it came by a snapshot from the leader
        ({"outrun": True}, False),  # a purge was faster: a newer snapshot is needed
    ],
)
def test_when_another_round_is_needed(told: dict[str, int | None], expected: bool) -> None:
    assert settled(standing(**told)) is expected


def test_logs_before_the_one_that_holds_the_archived_end_are_not_read() -> None:
    logs = [file_of(name) for name in ("log.1", "log.10", "log.20", "log.30")]
    wishes = logs_to_read(logs, {"log.20": 777}, 0x25)
    assert [(w.file.path.name, w.start_at, w.closed) for w in wishes] == [("log.20", 777, True), ("log.30", 0, False)]
    assert len(logs_to_read(logs, {}, None)) == 4


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(1, 5), (6, 9)], []),
        ([(1, 5), (8, 9)], [RoundHole(6, 7)]),
        ([(1, 5), (EPOCH + 1, EPOCH + 4)], []),
        ([(1, 5), (EPOCH + 3, EPOCH + 4)], [RoundHole(EPOCH + 1, EPOCH + 2)]),
        ([(1, 5), (3 * EPOCH + 1, 3 * EPOCH + 4)], []),  # a skipped epoch is legal; only a digest can tell
        ([], []),
    ],
)
def test_holes_between_runs(runs: list[tuple[int, int]], expected: list[RoundHole]) -> None:
    assert holes(runs) == expected


zxids = st.builds(lambda epoch, counter: epoch * EPOCH + counter, st.integers(0, 3), st.integers(1, 60))


@given(st.lists(st.tuples(zxids, st.integers(0, 20)), max_size=8), st.none() | zxids, st.booleans())
def test_claims_and_gaps_tile_the_log_exactly(drawn: list[tuple[int, int]], before: int | None, trusting: bool) -> None:
    """Whatever pieces there are, and whatever they continue: no position twice, none forgotten."""
    runs: list[tuple[int, int]] = []
    for first, length in sorted(drawn):
        last = first + length
        if first > (runs[-1][1] if runs else before or 0) and epoch_of(last) == epoch_of(first):
            runs.append((first, last))
    chain = [before, *(last for _, last in runs)] if before is not None else [last for _, last in runs]
    believed = {(a, b) for a in chain for b, _ in runs} if trusting else set()
    found = claim_logs([placed(*run) for run in runs], before, believed)
    if not runs:
        assert not found.segments
        return
    start = runs[0][0] if before is None else before + 1
    pieces = [Range(s.start, s.end) for s in found.segments] + [Range(g.start, g.end) for g in found.gaps]
    tiling = tile(Range(start, runs[-1][1] + 1), pieces)
    assert not tiling.gaps
    assert not tiling.overlaps
    firsts = [first for first, _ in runs][0 if before is not None else 1 :]
    joined = [follows(a, b) and (trusting or b == a + 1) for a, b in zip(chain, firsts, strict=False)]
    breaks = joined.count(False)
    assert len(found.gaps) == breaks


def placed(first: int, last: int) -> PlacedLog:
    kept = ArchivedLog(
        member="m",
        history="1",
        name="log.1",
        first=first,
        last=last,
        records=last - first + 1,
        min_time_ms=0,
        max_time_ms=0,
        last_adler=1,
        ending=LogFileEnding.CLEAN,
        proof=Proof.PROVEN,
        size_bytes=100,
        sha256=NOTHING,
    )
    stored = StoredObject(
        name="x", token=TOKEN, codec=Codec.NONE, size_bytes=100, sha256=NOTHING, plain_bytes=100, plain_sha256=NOTHING
    )
    return PlacedLog(kept, stored)


def test_a_backup_reaches_as_far_back_as_it_is_told_and_keeps_the_snapshot_for_it() -> None:
    snapshots, logs = [snapshot_at(zxid) for zxid in (10, 20, 30)], [log_from(first) for first in (1, 11, 21, 31)]
    everything = within(logs, snapshots, None)
    assert (everything[0], everything[1]) == (logs, snapshots)
    kept_logs, kept_snapshots = within(logs, snapshots, 25)  # the time of a transaction is its zxid here
    assert [s.zxid for s in kept_snapshots] == [20, 30]
    assert [r.first for r in kept_logs] == [21, 31]
    assert within(logs, snapshots[:0], 25)[0] == logs  # without a snapshot nothing is let go


@pytest.mark.parametrize(
    ("ends", "asked", "base"),
    [
        ((10, 20), [], 20),
        ((10, 20, 30), [21], 20),
        ((10, 24, 30), [21], 24),
        ((10, 26, 30), [21], 10),
        ((10, 33), [], 10),
        ((), [], 0),
    ],
)
def test_a_log_is_read_for_its_times_only_where_a_snapshot_ends_within_it(
    ends: tuple[int, ...], asked: list[int], base: int
) -> None:
    """And none behind it: what counts is the first transaction of the time."""
    read: list[int] = []

    def first_since(log: ArchivedLog, since_ms: int) -> int:
        read.append(log.first)
        return max(log.first, since_ms)

    logs = [log_from(first) for first in (31, 21, 11, 1)]
    kept = within(logs, [snapshot_at(zxid) for zxid in ends], 25, first_since)
    assert read == asked
    assert min((s.zxid for s in kept[1]), default=0) == base


def test_no_log_is_read_for_a_snapshot_before_which_there_is_nothing_to_let_go() -> None:
    snapshots, logs = [snapshot_at(25), snapshot_at(40)], [log_from(21), log_from(31)]

    def unasked(log: ArchivedLog, _since_ms: int) -> int:
        raise AssertionError(log.name)

    assert within(logs, snapshots, 25, unasked) == (logs, snapshots)


@pytest.mark.parametrize(
    ("first", "proven", "limit", "expected"),
    [
        (5, (8,), None, (8, Proof.PROVEN)),
        (9, (8,), None, (0xFFFF_FFFF, Proof.UNPROVEN)),
        (9, (8,), 20, (20, Proof.UNPROVEN)),
        (5, (EPOCH + 8,), EPOCH + 8, (0xFFFF_FFFF, Proof.UNPROVEN)),  # another epoch's word proves nothing here
        (EPOCH + 1, (EPOCH + 8, 4), EPOCH + 8, (EPOCH + 8, Proof.PROVEN)),
    ],
)
def test_how_far_a_piece_goes(first: int, proven: tuple[int, ...], limit: int, expected: tuple[int, Proof]) -> None:
    assert wanted_until(first, proven, limit) == expected


def snapshot_at(zxid: int) -> ArchivedSnapshot:
    name = f"snapshot.{zxid:x}"
    return ArchivedSnapshot(
        token=TOKEN, member="m", history="1", name=name, zxid=zxid, fuzzy_end=zxid, size_bytes=1, sha256=NOTHING
    )


def log_from(first: int) -> ArchivedLog:
    name, last = f"log.{first:x}", first + 9
    return ArchivedLog(
        token=TOKEN, member="m", history="1", name=name, first=first, last=last, last_adler=1, max_time_ms=last
    )


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        (["active-tail", "torn-tail", "held-by-another", "snapshot-unfinished"], 0),
        (["stray-file"], 2),
        (["snapshot-damaged"], 2),
        (["no-log-seen"], 2),
        (["hole"], 21),
        (["server-unreachable"], 2),
        (["header-rewritten"], 2),
        (["other-server"], 2),
        (["no-log"], 21),
        (["rests-on-damage"], 21),
        (["server-unreachable", "lost-transactions"], 21),
        (["no-snapshot"], 21),
        (["behind-the-server"], 21),
        (["end-unreachable"], 21),
    ],
)
def test_what_a_backup_exits_with(codes: list[str], expected: int) -> None:
    assert exit_code(Finding(code=c, severity=Severity.NOTE, where="", what="") for c in codes) == expected


class TestConfiguration:
    def test_passwords_are_replaced_and_secrets_left_out_by_name(self, tmp_path: Path) -> None:
        made = {
            "zoo.cfg": "dataDir=/data\nssl.keyStore.password=topsecret\n",
            "jaas.conf": 'Server {\n  user_bob="hush"\n  password="hush";\n};\n',
            "java.env": "SERVER_JVMFLAGS=-Dzookeeper.DigestAuthenticationProvider.superDigest=super:AbC=\n",
            "zoo.cfg.dynamic.100000000": "server.1=a:2888:3888\n",
            "keystore.jks": "jks",
            "server.keytab": "kt",
            "cert.pem": "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n",
            "logback.xml": '<a><password>hush</password><Property name="smtp.password" value="hush"/>'
            '<property name="apiToken">hush</property><level>info</level><property value="hush" name="password"/>'
            "<password><![CDATA[hush]]></password><secret><!-- x --> hush</secret><entry key='pwd' value='hush\"hush'/>"
            '<Property name="file" value="zk.log"/></a>',
            "notes.txt": "none of our business",
        }
        for name, text in made.items():
            (tmp_path / name).write_text(text)
        found = gather_config([tmp_path], include_secrets=False)
        kept = {c.name: c.content.decode() for c in found.files}
        assert set(kept) == {"zoo.cfg", "jaas.conf", "java.env", "zoo.cfg.dynamic.100000000", "logback.xml"}
        assert "<level>info</level>" in kept["logback.xml"]
        assert '<Property name="file" value="zk.log"/></a>' in kept["logback.xml"]
        assert "dataDir=/data" in kept["zoo.cfg"]
        for secret in ("topsecret", "hush", "AbC"):
            assert secret not in "".join(kept.values())
        told = "\n".join(found.left_out)
        assert all(name in told for name in ("keystore.jks", "server.keytab", "cert.pem"))
        assert {c.name for c in found.files if c.redacted} == {"zoo.cfg", "jaas.conf", "java.env", "logback.xml"}

    def test_a_word_in_angle_brackets_takes_nothing_with_it(self, tmp_path: Path) -> None:
        text = 'tickTime=2000\n# addauth digest super:<password>\n# name="token" >\ndataDir=/data\nserver.1=a:1:2\n'
        (tmp_path / "zoo.cfg").write_text(text)
        (kept,) = gather_config([tmp_path], include_secrets=False).files
        assert kept.content.decode().endswith("dataDir=/data\nserver.1=a:1:2\n")

    def test_originals_come_when_they_are_asked_for_and_keytabs_never(self, tmp_path: Path) -> None:
        (tmp_path / "jaas.conf").write_text('password="hush"')
        (tmp_path / "keystore.jks").write_bytes(b"jks")
        (tmp_path / "server.keytab").write_bytes(b"kt")
        found = gather_config([tmp_path], include_secrets=True)
        assert {c.name: c.content for c in found.files} == {"jaas.conf": b'password="hush"', "keystore.jks": b"jks"}
        assert len(found.left_out) == 1
        assert "keytab is never copied" in found.left_out[0]
