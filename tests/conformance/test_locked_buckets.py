"""Buckets with versions and object lock: writes are accepted, the state is reported, rewritten names are found."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.store.access import open_store
from logkeep.store.address import parse_address
from logkeep.store.buckets.versions import Versioning, bucket_protection
from logkeep.store.conformance.checks import CHECKS, run_checks
from logkeep.store.conformance.trial import Scale
from tests.support.cli.in_process import Here
from tests.support.scripted.backup import back_up
from tests.support.servers.lock_rule import lock_rule
from tests.support.servers.s3 import ENVIRONMENT, S3Server, seaweed

pytestmark = pytest.mark.xdist_group("s3-locked")
_SMALL = Scale(keys=5, racers=4, races=1, stream_bytes=9 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """With one bucket that is written to: each takes a third of the server's volumes."""
    with seaweed(tmp_path_factory.mktemp("s3")) as running:
        client = running.client()
        client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        client.put_object_lock_configuration(
            Bucket="locked", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
        )
        yield running


def test_writes_carry_the_checksum_that_a_lock_requires(server: S3Server) -> None:
    """Small objects, replacements and streams of several parts."""
    slugs = {"read-after-write", "put-new-refused", "replace-fresh", "stream"}
    writes = [check for check in CHECKS if check.slug in slugs]
    with lock_rule(server) as strict:
        outcomes = run_checks(open_store(strict.url("locked", "checked")), "t/", utc_now, _SMALL, tuple(writes))
    assert [(outcome.check.slug, outcome.problem) for outcome in outcomes] == [(check.slug, None) for check in writes]


def test_versions_and_locks_are_known(server: S3Server) -> None:
    server.make_bucket("plain")
    client = server.client()
    client.create_bucket(Bucket="kept")
    client.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    words = {
        "plain": "versioning is off, and there is no object lock",
        "kept": "versioning is on, and there is no object lock",
        "locked": "versioning is on, and new objects are locked for 1 day (GOVERNANCE)",
    }
    for bucket, text in words.items():
        assert str(bucket_protection(parse_address(server.url(bucket)))) == text


def test_a_bucket_that_cannot_be_asked_is_unknown() -> None:
    found = bucket_protection(parse_address("s3://none?endpoint=http://127.0.0.1:1&region=us-east-1"))
    assert found.versioning is Versioning.UNKNOWN
    assert "the request failed" in str(found)


@dataclass(frozen=True)
class Kept:
    """A repository in the locked bucket, which keeps versions, with one backup."""

    client: Any
    prefix: str
    url: str
    place: SourceRef
    backup: BackupId

    def verify(self) -> list[Finding]:
        verifier = Verifier(self.place, InlineEngine(), this_process("v"), utc_now, random_token)
        return list(verifier.verify(self.backup, "files").findings)

    def key(self, ending: str) -> str:
        """The name of an object of the backup."""
        names = [info.name for info in self.place.store.list(layout.source_root("prod"))]
        return next(name for name in names if name.endswith(ending) and "index" not in name)

    def delete(self, name: str) -> None:
        """As any client that may delete: it leaves a marker."""
        self.client.delete_object(Bucket="locked", Key=f"{self.prefix}/{name}")


@pytest.fixture
def kept(server: S3Server) -> Kept:
    prefix = f"kept-{random_token()}"
    store = open_store(server.url("locked", prefix))
    repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
    place = repository.place("prod")
    backup = back_up(place, {0: 6}, InlineEngine(), clock=utc_now, tokens=random_token)
    return Kept(server.client(), prefix, store.url, place, BackupId(backup.id))


def test_a_bucket_that_does_not_say_is_a_note_and_not_an_error(kept: Kept, server: S3Server, tmp_path: Path) -> None:
    with lock_rule(server, denied="versioning") as proxy:
        url = proxy.url("locked", kept.prefix)
        report = Here(tmp_path, {**ENVIRONMENT, "LOGKEEP_REPO": url}).json("verify")
    (found,) = report["findings"]
    assert (found["code"], found["severity"], found["where"]) == ("versions-unread", "note", url)
    assert found["what"] == "whether the bucket keeps versions is not known: the store answered AccessDenied"
    assert report["verdict"] == "good"


@pytest.mark.parametrize("ending", ["commits/00000000000000000001.json", ".parquet", ".log"])
def test_a_name_that_was_deleted_and_created_again_is_found(kept: Kept, tmp_path: Path, ending: str) -> None:
    """Put-if-absent succeeds after a delete: nothing but the versions shows that another client was there."""
    assert kept.verify() == []
    name = kept.key(ending)
    data = kept.place.store.get(name, 1 << 20)
    kept.delete(name)
    kept.place.store.put_new(name, data + b"\n")
    kept.delete(name)
    kept.place.store.put_new(name, data)
    (found,) = kept.verify()
    assert (found.code, found.where) == ("name-rewritten", name)
    assert "2 versions that differ and was deleted in between" in found.what
    assert f"--prefix {kept.prefix}/{name}" in found.remedy
    here = Here(tmp_path, {**ENVIRONMENT, "LOGKEEP_REPO": kept.url})
    assert "name-rewritten" in here.run("verify", "--json", code=2).stdout


def test_the_same_bytes_after_a_delete_are_a_deleted_name(kept: Kept) -> None:
    name = kept.key(".parquet")
    data = kept.place.store.get(name, 1 << 20)
    kept.delete(name)
    kept.place.store.put_new(name, data)
    assert [(found.code, found.where) for found in kept.verify()] == [("name-deleted", name)]


def test_a_hidden_commit_at_the_end_of_the_chain_is_found(kept: Kept) -> None:
    """Its place could be taken by another one."""
    last = kept.key("commits/00000000000000000001.json")
    kept.delete(last)
    assert ("name-deleted", last) in [(found.code, found.where) for found in kept.verify()]


def test_what_garbage_collection_deleted_is_no_finding(kept: Kept) -> None:
    stray = kept.key(".log").replace(".log", "").rpartition(".")[0] + f".{random_token()}.log"
    kept.place.store.put_new(stray, b"of a run that failed")
    kept.place.store.delete(stray)
    assert kept.verify() == []
