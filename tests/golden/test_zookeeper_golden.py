"""Files that real servers wrote must be read for ever, whatever is changed here.

Each archive holds the directory of one server as it lay on its disk, and what an independent client saw of its tree at
the end; `make_zookeeper` wrote them once.
"""

import io
import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import FileKind, FileName, SnapshotPacking, parse_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader, SnapshotTail
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import Multi, Transaction, decode
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of, tree_of
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import Recording, Seen

HERE = Path(__file__).parent / "zookeeper"
SEALS = {"3.4.14": 1, "3.6.4": 2, "3.9.5": 3, "3.9.5-no-digests": 2}
WITH_DIGESTS = {"3.6.4", "3.9.5"}
OLD_KINDS = {1, 2, 5, 7, 14, -1, -10, -11}
NEW_KINDS = OLD_KINDS | {15, 19, 21}


class Golden:
    """What one server left."""

    def __init__(self, version: str) -> None:
        self.version = version
        with tarfile.open(HERE / f"{version}.tar.xz") as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]  # all are files

    def named(self, kind: FileKind) -> list[tuple[FileName, bytes]]:
        parsed = [(parse_name(name), data) for name, data in self.files.items()]
        return sorted((name, data) for name, data in parsed if name is not None and name.kind is kind)

    def transactions(self) -> list[Transaction]:
        logs = self.named(FileKind.LOG)
        return [decode(body) for _, log in logs for body in txnlog.bodies(io.BytesIO(log))]

    def recorded(self) -> Recording:
        told = json.loads(self.files["recorded.json"])
        return Recording(told["zxid"], {path: _seen(values) for path, values in told["nodes"].items()})


def _seen(values: list[object]) -> Seen:
    data, acls, *numbers = values
    assert isinstance(acls, list)
    plain = None if data is None else bytes.fromhex(str(data))
    return Seen(plain, tuple(tuple(acl) for acl in acls), *numbers)  # type: ignore[arg-type]  # numbers, as they were written


@pytest.fixture(scope="module", params=SEALS)
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.param)


def loaded(name: FileName, snapshot: bytes) -> tuple[Tree, SnapshotTail]:
    reader = SnapshotReader(opened(io.BytesIO(snapshot), name.packing))
    tree = tree_of(reader.sessions(), reader.acls(), reader.nodes())
    tree.zxid = name.zxid
    return tree, reader.ending()


def replayed(tree: Tree, transactions: list[Transaction], until: int) -> tuple[Tree, int]:
    """And how many digests fitted."""
    compared = 0
    for each in transactions:
        if tree.zxid < each.zxid <= until:
            tree.apply(each)
            if each.digest is not None:
                assert each.digest == tree.digest, f"zxid {each.zxid:x}"
                compared += 1
    return tree, compared


def test_logs_are_whole(golden: Golden) -> None:
    logs = golden.named(FileKind.LOG)
    assert len(logs) >= 3
    for name, log in logs:
        found = txnlog.scan(io.BytesIO(log))
        assert (found.first_zxid, found.damage) == (name.zxid, ())
        assert found.with_digests == (golden.version in WITH_DIGESTS)
        assert txnlog.scan(io.BytesIO(log[: found.size_bytes])).records == found.records
    kinds = Counter(each.kind for each in golden.transactions())
    assert set(kinds) | {7} == (OLD_KINDS if golden.version == "3.4.14" else NEW_KINDS)
    multis = [each.change for each in golden.transactions() if isinstance(each.change, Multi)]
    mixed = [multi for multi in multis if not multi.applied and any(part.kind != -1 for part in multi.parts)]
    assert mixed
    assert any(multi.applied for multi in multis)


def test_snapshots_are_whole(golden: Golden) -> None:
    found = golden.named(FileKind.SNAPSHOT)
    packings = {name.packing.value for name, _ in found}
    assert packings == ({""} if golden.version == "3.4.14" else {"", "gz", "snappy"})
    for name, snapshot in found:
        tree, ending = loaded(name, snapshot)
        assert ending.checksums == SEALS[golden.version]
        if ending.digest is not None:
            assert (ending.digest, ending.digest_zxid) == (tree.digest, name.zxid)
        assert (ending.last_processed is not None) == golden.version.startswith("3.9")
        assert ending.fuzzy_end(name.zxid, 0) == (name.zxid if ending.digest else None)


def test_every_snapshot_leads_to_the_tree_that_a_client_saw(golden: Golden) -> None:
    live, transactions = golden.recorded(), golden.transactions()
    assert len(golden.named(FileKind.SNAPSHOT)) >= 3
    for name, snapshot in golden.named(FileKind.SNAPSHOT):
        tree, compared = replayed(loaded(name, snapshot)[0], transactions, live.zxid)
        assert differences(live, tree) == []
        assert bool(compared) == (golden.version in WITH_DIGESTS)


def test_logs_alone_lead_there_too(golden: Golden) -> None:
    live = golden.recorded()
    tree, _ = replayed(new_tree(with_config=golden.version != "3.4.14"), golden.transactions(), live.zxid)
    assert differences(live, tree) == []


def test_a_tree_survives_a_snapshot_of_ours(golden: Golden) -> None:
    live = golden.recorded()
    tree, _ = replayed(new_tree(with_config=golden.version != "3.4.14"), golden.transactions(), live.zxid)
    acls, rows = rows_of(tree)
    written = b"".join(exact_snapshot(tree.sessions, acls, rows, zxid=tree.zxid, digest=tree.digest))
    again, ending = loaded(FileName(FileKind.SNAPSHOT, tree.zxid, SnapshotPacking.PLAIN, stray=False), written)
    assert (ending.digest, again.digest, again.sessions) == (tree.digest, tree.digest, tree.sessions)
    assert differences(live, again) == []
