"""One directory with everything that the verbs read or reach, all of it an attacker's."""

import contextlib
import json
import os
import re
import shutil
import socket
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from logkeep.application.kafka.cut_document import ApplicationLog, CutReader, ParticipantCut, put_cut
from logkeep.checkpoint.archive.record import ROLE as APPLICATION_ROLE
from logkeep.checkpoint.archive.record import ApplicationRecord
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.restore.histories import reserve_history
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import list_restores
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.restore.target.journal import JournalPlace, Phase, RestoreJournal, encoded
from logkeep.zookeeper.subtree.journal import Heading
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.hostile.calls import piped
from tests.support.hostile.corpus import LONG, SURROGATE, TEXT
from tests.support.hostile.documents import Rewriter
from tests.support.hostile.repositories import (
    changeable,
    held_lease,
    kafka_repository,
    zookeeper_directories,
    zookeeper_repository,
)
from tests.support.kafka.broker_disks import add_log, made_disk, run_of
from tests.support.zeebe.golden import unpacked_store
from tests.support.zeebe.handmade import write_store
from tests.support.zeebe.made_backups import made_backup
from tests.support.zookeeper.changed_documents import rewritten

_PARSED = re.compile(r"0x|sha256:|\d{4}-\d\d-\d\dT|[0-9a-f]{16}")
"""How texts begin that are numbers, hashes and moments."""
_LONG_TEXT = 6_000
"""Of each field of a repository: longer than what is printed, and a document of many fields stays below its limit."""


@dataclass(frozen=True)
class HostileWorld:
    """Made once; each test works in a copy."""

    root: Path
    backup: int
    restores: tuple[int, int, int]
    """One that ended, one that was aborted, one that was interrupted."""
    stored_kinds: frozenset[str]
    """Types of the stored documents, all with hostile strings."""

    def copied(self, to: Path) -> "HostileWorld":
        shutil.copytree(self.root, to, symlinks=True)
        _journal(to / "journal")
        return HostileWorld(to, self.backup, self.restores, self.stored_kinds)

    def places(self) -> dict[str, str]:
        """What the table of calls refers to by name."""
        done, _aborted, interrupted = map(str, self.restores)
        names = (
            "kafka",
            "long",
            "locked",
            "zk",
            "fresh",
            "server",
            "target",
            "bundles",
            "disk",
            "journal",
            "dataset",
            "imported",
            "zeebe",
            "zeebe-archive",
        )
        return {
            **{name: str(self.root / name) for name in names},
            "survey": str(self.root / "host.survey.json"),
            "subtree": str(self.root / "subtree.journal"),
            "backup": str(self.backup),
            "done": done,
            "interrupted": interrupted,
            "text": TEXT.replace("\0", ""),
            "bundle": str(self.root / "bundles" / "one"),
        }


def hostile_world(root: Path) -> HostileWorld:
    place = kafka_repository(root / "kafka")
    restores = tuple(row.id for row in list_restores(place))
    server = zookeeper_directories(root / "server")
    zookeeper_repository(root / "zk", server)
    _zookeeper_files(root)
    _imported(root)
    _zeebe_archive(root)
    shutil.copytree(root / "kafka", root / "long")
    Rewriter(root / "long", changeable, LONG[:_LONG_TEXT]).rewrite()
    repositories = ("kafka", "zk", "imported", "zeebe-archive")
    kinds = {k for repo in repositories for k in Rewriter(root / repo, changeable).rewrite().kinds}
    (root / "kafka" / "sources" / os.fsdecode(os.fsencode(f"x{SURROGATE[0]}\x1b[2J\n"))).mkdir()
    shutil.copytree(root / "kafka", root / "locked")
    held_lease(root / "locked", operation=TEXT + LONG[:900_000])
    _disk(root / "disk")
    _zeebe(root / "zeebe")
    (root / "dataset" / "orders" / "consumer_offsets_partition_000").write_text(TEXT)
    backup = read_chain(SourceRef(LocalStore(root / "kafka"), place.repository, "prod")).completed[0].id
    return HostileWorld(root, backup, restores, frozenset(kinds))  # type: ignore[arg-type]  # three of them


def _imported(root: Path) -> None:
    """A dataset, and a repository with a backup that was imported from it."""
    write_partition(root / "dataset", "orders", 0, {0: [HandRecord(5, b"k", b"v")]}, {TEXT: 5})
    repository = f"file://{root}/imported"
    for words in (["init"], ["kafka", "import", str(root / "dataset"), "--partition-count", "orders=1"]):
        done = piped("logkeep", [*words, "-r", repository, "-q"], root)
        assert done.code in {0, 2}, done.text
    _application_documents(root / "imported")


def _application_documents(repository: Path) -> None:
    """Documents of applications, beside a backup that does not name them."""
    store = LocalStore(repository)
    place = open_repository(store).choose(None)
    document = ParticipantCut(
        repository=place.repository,
        source=place.source,
        id=read_chain(place).completed[0].id,
        application="shop",
        stamp="00",
        history=1,
        transactional=True,
        forced=0,
        disagreeing=0,
        logs=(ApplicationLog("orders", 0, 1, 2, (CutReader("group", 1),), (1,)),),
    )
    put_cut(place, BackupId(document.id), document, random_token())
    record = ApplicationRecord(
        repository=place.repository,
        source=place.source,
        id=document.id,
        application="ab" * 16,
        name="shop",
        partitions=1,
        history=1,
        nonce="nonce",
        copies=(PartitionCopy(partition=0, term=1, history=1, nonce="nonce", outcome="completed", reason="reason"),),
    )
    put_attachment(place, BackupId(document.id), APPLICATION_ROLE, record, random_token())
    reserve_history(place, document.id, 0, utc_now, random_token)


def _zookeeper_files(root: Path) -> None:
    """Bundles, a survey, the journals of a restore of files and of one of a subtree."""
    exported = piped(
        "logkeep", ["zookeeper", "export", "latest", "-r", f"file://{root}/zk", "--to", str(root / "b")], root
    )
    assert exported.code == 0, exported.text
    (made,) = (root / "b").iterdir()
    (root / "bundles").mkdir()
    made.rename(root / "bundles" / "one")
    rewritten(root / "bundles" / "one", _hostile, sealed=True)
    for name in (f"backup{TEXT[:40]}", os.fsdecode(b"not-utf8\xff")):
        shutil.copytree(root / "bundles" / "one", root / "bundles" / name.replace("/", "").replace("\0", ""))
    survey = ["zookeeper", "restore", "survey", "--data-dir", f"{root}/server/data", "--to", f"{root}/host.survey.json"]
    assert piped("logkeep", survey, root).code in {0, 2}
    path = root / "host.survey.json"
    path.write_text(json.dumps(_filled(json.loads(path.read_text()), keep={"type", "taken", "fingerprint"})))
    (root / "target").mkdir()
    shutil.copytree(root / "server" / "data", root / "journal")
    heading = Heading(hosts="127.0.0.1:1", top=TEXT, what=TEXT, undoes=TEXT)
    (root / "subtree.journal").write_bytes(json.dumps(_tagged(heading)).encode() + b"\n")


def _journal(directory: Path) -> None:
    """It names its own directory."""
    place = JournalPlace(str(directory), str(directory), (TEXT,), TEXT)
    journal = RestoreJournal(restore="20261117000000-deadbeef", phase=Phase.NEW, places=(place,))
    (directory / "logkeep-restore.json").write_bytes(encoded(journal))


def _tagged(heading: Heading) -> dict[str, Any]:
    return {"type": "subtree-journal-1", "hosts": heading.hosts, "top": heading.top, "what": heading.what,
            "undoes": heading.undoes}  # fmt: skip


def _hostile(document: dict[str, Any]) -> None:
    """Every text of a bundle's document but those that name files or moments."""
    kept = {
        "version",
        "backup_id",
        "name",
        "stored_name",
        "status",
        "compression",
        "history",
        "member",
        "level",
        "role",
    }
    changed = _filled(document, keep=kept)
    document.clear()
    document.update(changed)
    for log in document["files"]["txnlogs"]:
        log["note"] = TEXT


def _filled(value: Any, keep: set[str], field: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, keep, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, keep, field) for inner in value]
    free = isinstance(value, str) and field not in keep and not _PARSED.match(value)
    return value + TEXT if free else value


def _zeebe_archive(root: Path) -> None:
    """A repository with a backup that a real Zeebe stored."""
    store, repository = unpacked_store(root / "zeebe-golden"), f"file://{root}/zeebe-archive"
    for words in (["init"], ["zeebe", "import", "20", "--store", str(store), "--source", "zeebe"]):
        done = piped("logkeep", [*words, "-r", repository, "-q"], root)
        assert done.code == 0, done.text


def _zeebe(root: Path) -> None:
    """A store of Zeebe in which every text that is free is hostile, and one copy has failed."""
    copies = made_backup()
    copies[0] = replace(copies[0], status="failed", reason=TEXT)
    write_store(root, [replace(each, version=f"8.6.0{TEXT}") for each in copies])
    (root / "2" / "20" / "0" / "segments" / "odd\x1b[2J").write_text(TEXT)


def _disk(root: Path) -> None:
    made_disk(root, cluster=f"cluster{TEXT}".split("\n")[0])
    add_log(root, "orders-0", [run_of(0, 10)])
    for name in (f"{TEXT[:60]}-0", os.fsdecode(b"not-utf8\xff-0")):
        add_log(root, name.replace("/", "").replace("\0", ""), [run_of(0, 5)])


class HostileServer:
    """Answers every question, four-letter words and HTTP alike, with hostile text."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        text = TEXT.replace("\n", " ").encode("utf-8", "replace")
        words = b"Zookeeper version: 3.9.%s\nMode: %s\nZxid: 0x6\nNode count: 1\n" % (text, text)
        web = b"HTTP/1.1 500 %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n%s" % (
            text[:50],
            text[:50],
            TEXT.encode(),
        )
        with contextlib.suppress(OSError):
            while True:
                made, _ = self._listener.accept()
                with made, contextlib.suppress(OSError):
                    made.sendall(web if made.recv(4096).startswith((b"GET", b"POST")) else words)
