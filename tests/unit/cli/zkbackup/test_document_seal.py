"""The document of a bundle has a seal: whatever is changed in it is found, and nothing vouches for it afterwards."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.convert import import_bundle
from logkeep.zookeeper.repo.sink import archiving
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.changed_documents import rewritten
from tests.support.zookeeper.handmade_directories import INLINE, MadeServer, bundled
from tests.support.zookeeper.repositories import new_place

Document = dict[str, Any]


@pytest.fixture
def view(tmp_path: Path) -> BundleView:
    server = MadeServer(tmp_path / "server", zxid=8)
    server.snapshot(0)
    server.snapshot(4, digest=False, nodes=range(1, 5))
    server.log(range(1, 9), creating=True)
    made, _ = bundled(server, tmp_path / "backups", "one", codec=Codec.GZIP)
    return made


CHANGES: dict[str, Callable[[Document], object]] = {
    "bound": lambda it: it["files"]["snapshots"][1].update(bound="0x5"),
    "history": lambda it: it.update(history="2"),
    "time": lambda it: it["files"]["txnlogs"][0].update(min_time_ms=1),
    "end": lambda it: it.update(backup_zxid={"hex": "0x7", "decimal": 7}),
    "role": lambda it: it["zookeeper"].update(role="observer"),
    "a field more": lambda it: it.update(repairs=[]),
    "an older format": lambda it: it.update(version="1.0"),
    "the seal's own name": lambda it: it.update(sebl=it.pop("seal")),
    "no seal": lambda it: it.pop("seal"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_document_that_is_not_what_was_written(view: BundleView, tmp_path: Path, change: Any) -> None:
    rewritten(view.path, change, sealed=False)
    words = ("verify", f"--backup-dir={view.path}", "--level=data")
    for more in ([], ["--fix"], []):  # a stored verdict vouches for nothing, and nothing is mended by what it says
        ended = zkbackup(*words, *more, "--format=json", home=tmp_path)
        told = json.loads(ended.stdout)
        assert (ended.returncode, told["status"], told["quality_score"]) == (10, "damaged", 0)
        assert ("document-changed", "metadata/backup_info.json") in {(f["code"], f["where"]) for f in told["findings"]}
    assert not (view.path / "damaged").exists()
    assert "Document: ❌ changed since it was written" in zkbackup(*words, home=tmp_path).stdout


def test_whatever_character_is_changed(view: BundleView) -> None:
    path = view.path / "metadata" / "backup_info.json"
    whole = path.read_bytes()
    said = {name: value for name, value in json.loads(whole).items() if name != "validation"}
    missed = []
    for at in range(len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        path.write_bytes(changed)
        try:
            intact = BundleView(view.path).intact
        except (Damaged, FormatTooNew):
            continue
        now = {name: value for name, value in json.loads(changed).items() if name != "validation"}
        if intact and now != said:
            missed.append(changed[at - 20 : at + 20])
    assert missed == []


def test_no_restore_from_it_and_no_import_of_it(view: BundleView, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    words = ("restore", f"--backup-dir={view.path}", f"--zk-data-dir={target}", "--zk-host=127.0.0.1:1", "--dry-run")
    assert zkbackup(*words, home=tmp_path).returncode == 0
    rewritten(view.path, CHANGES["time"], sealed=False)
    refused = zkbackup(*words, "--format=json", home=tmp_path)
    said = json.loads(refused.stderr.splitlines()[-1])
    assert (refused.returncode, said["category"]) == (10, "corruption")
    assert "its seal does not match" in said["message"]
    risked = zkbackup(*words, "--skip-verify", home=tmp_path)
    assert (risked.returncode, "its seal does not match" in risked.stderr) == (0, True), risked.stderr
    place = new_place()
    with (
        archiving(place, clock=utc_now, tokens=random_token, codec=Codec.NONE) as sink,
        pytest.raises(Damaged, match="its seal does not match"),
    ):
        import_bundle(BundleView(view.path), sink, INLINE)


def test_verdicts_and_repairs_of_ours_keep_it_whole(view: BundleView, tmp_path: Path) -> None:
    words = ("verify", f"--backup-dir={view.path}", "--level=data")
    assert zkbackup(*words, home=tmp_path).returncode == 0
    assert BundleView(view.path).intact
    stored = view.path / "txnlogs" / "log.1.gz"
    stored.chmod(0o600)
    content = stored.read_bytes()
    stored.write_bytes(content[:5] + b"?" + content[6:])
    assert zkbackup(*words, "--fix", home=tmp_path).returncode == 2
    assert BundleView(view.path).intact
    assert zkbackup(*words, home=tmp_path).returncode == 0


def test_one_without_a_seal_stays_readable_and_gets_none(view: BundleView, tmp_path: Path) -> None:
    """As earlier releases wrote them."""

    def older(document: Document) -> None:
        document["version"] = "1.0"
        del document["seal"]

    rewritten(view.path, older, sealed=False)
    stored = view.path / "txnlogs" / "log.1.gz"
    stored.chmod(0o600)
    content = stored.read_bytes()
    stored.write_bytes(content[:5] + b"?" + content[6:])
    words = ("verify", f"--backup-dir={view.path}", "--level=data")
    assert [zkbackup(*words, *more, home=tmp_path).returncode for more in ([], ["--fix"], [])] == [10, 2, 0]
    document = json.loads((view.path / "metadata" / "backup_info.json").read_text())
    assert (document["version"], "seal" in document, len(document["repairs"])) == ("1.0", False, 1)
    rewritten(view.path, lambda it: it["backup_zxid"].update(decimal=7), sealed=False)
    assert zkbackup(*words, home=tmp_path).returncode == 10
