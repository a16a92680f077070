"""SCRAM credentials: in the archive exactly what passwords derive to, for the holder of the key alone."""

import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pyrage
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from logkeep.embedded.ports import free_ports
from logkeep.formats.kafka.internal_topics.scram_records import ScramCredential, ScramFold
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.client.metadata_log import MetadataLog, open_quorum
from logkeep.kafka.client.settings import ClientSettings, endpoints
from tests.e2e.test_bad_input import one_error
from tests.e2e.test_canary import files_with
from tests.support.cli.filled_repository import Filled, tree
from tests.support.servers.secured_kafka import PASSWORD, SecuredKafka

pytestmark = pytest.mark.xdist_group("kafka-secured")
KEY = pyrage.x25519.Identity.generate()
RECIPIENT = str(KEY.to_public())
SALT = b"a-salt-that-no-other-text-holds-4711"
_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
_NAMES = {ScramMechanism.SCRAM_SHA_256: "SCRAM-SHA-256", ScramMechanism.SCRAM_SHA_512: "SCRAM-SHA-512"}


@pytest.fixture(scope="module")
def admin(secured: SecuredKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": secured.bootstrap})


def _set(admin: AdminClient, user: str, mechanism: ScramMechanism, password: str, iterations: int = 4096) -> None:
    made = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), password.encode(), SALT)
    for each in admin.alter_user_scram_credentials([made]).values():
        each.result(30)


def _delete(admin: AdminClient, user: str, mechanism: ScramMechanism) -> None:
    for each in admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)]).values():
        each.result(30)


def _backup(kafka: SecuredKafka, *more: str) -> tuple[str, ...]:
    wanted = ("--topics", "open", "--source", "prod", "--scram-to", RECIPIENT)
    return "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, *wanted, *more


def _opened(repo: Filled, key: Any = KEY) -> dict[tuple[str, str], dict[str, Any]]:
    """What the holder of a key reads in the newest backup."""
    file = max(repo.root.glob("sources/prod/backups/*/attachments/scram.*.json"))
    stored = json.loads(file.read_text().splitlines()[0])
    found = json.loads(pyrage.decrypt(stored["age"].encode(), [key]))
    assert stored["credentials"] == len(found["credentials"])
    return {(c["user"], c["mechanism"]): c for c in found["credentials"]}


def _derived(mechanism: ScramMechanism, password: str, iterations: int = 4096, salt: bytes = SALT) -> dict[str, Any]:
    """RFC 5802, with nothing of ours."""
    name = _HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client = hmac.new(salted, b"Client Key", name).digest()
    values = {
        "salt": salt,
        "stored_key": hashlib.new(name, client).digest(),
        "server_key": hmac.new(salted, b"Server Key", name).digest(),
    }
    return {"iterations": iterations, **{key: base64.b64encode(value).decode() for key, value in values.items()}}


def _expect(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {key: found[key] for key in expected} == expected


def _log_start(kafka: SecuredKafka) -> int:
    return int(min((kafka.directory / "data" / "__cluster_metadata-0").glob("*.log")).stem)


def test_what_is_sealed_is_what_passwords_derive_to(secured: SecuredKafka, admin: AdminClient, repo: Filled) -> None:
    small, large = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    _set(admin, "bob", small, "first-password")
    _set(admin, "bob", large, "bobs-password-512", 8192)
    _set(admin, "bob", small, "second-password", 5000)
    _set(admin, "carol", large, "gone-password")
    _delete(admin, "carol", large)
    done = repo.run(*_backup(secured))
    found = _opened(repo)
    _expect(found["bob", "SCRAM-SHA-256"], _derived(small, "second-password", 5000))
    _expect(found["bob", "SCRAM-SHA-512"], _derived(large, "bobs-password-512", 8192))
    assert not any(user == "carol" for user, _ in found)
    for mechanism in (small, large):
        alice = found["alice", _NAMES[mechanism]]
        _expect(alice, _derived(mechanism, PASSWORD, salt=base64.b64decode(alice["salt"])))
    _nowhere(repo, done.stdout + done.stderr, found)
    with pytest.raises(pyrage.DecryptError):
        _opened(repo, pyrage.x25519.Identity.generate())
    shown = json.loads(repo.run("info", "latest", "--json").stdout)
    assert shown["kafka"]["scram_credentials"] == len(found)
    words = (
        "kafka",
        "restore",
        "latest",
        "--bootstrap-servers",
        secured.bootstrap,
        "--rename",
        "open=again",
        "--dry-run",
    )
    for parts, told, code in (("data,acls", 1, 2), ("data", 0, 0)):
        foreseen = json.loads(repo.run(*words, "--what", parts, "--json", code=code).stdout)
        assert [f["code"] for f in foreseen["findings"]].count("scram-not-restored") == told
    repo.run("verify")


def _nowhere(repo: Filled, output: str, found: dict[tuple[str, str], dict[str, Any]]) -> None:
    """No value of a credential, as bytes, base64 or hex, lies anywhere below the home or was printed."""
    plain = [base64.b64decode(c[k]) for c in found.values() for k in ("salt", "stored_key", "server_key")]
    files = [path.read_bytes() for path in repo.home.rglob("*") if path.is_file()] + [output.encode()]
    for value in plain:
        for spelling in (value, base64.b64encode(value), value.hex().encode()):
            assert not any(spelling in data for data in files)
    for secret in ("second-password", "bobs-password-512", PASSWORD, SALT.decode()):
        assert files_with(repo.home, secret) == []
        assert secret not in output


def _checkpoint(kafka: SecuredKafka) -> DivergingEpoch | None:
    """The newest snapshot on the controller's disk; the one at 0 is what the cluster was formatted with."""
    names = [p.stem for p in (kafka.directory / "data" / "__cluster_metadata-0").glob("*.checkpoint")]
    found = [
        DivergingEpoch(int(epoch), int(offset)) for offset, _, epoch in (n.partition("-") for n in names) if int(offset)
    ]
    return max(found, key=lambda each: each.end_offset, default=None)


def _folded(kafka: SecuredKafka, begin: DivergingEpoch | None) -> dict[tuple[str, str], ScramCredential]:
    fold, settings = ScramFold(), ClientSettings(endpoints(f"127.0.0.1:{kafka.controller_port}"))
    quorum = open_quorum(settings)
    with quorum.connection:
        for value in MetadataLog(quorum).values(begin):
            fold.add(value)
    return {(c.user, c.mechanism): c for c in fold.credentials()}


def test_a_snapshot_and_what_follows_are_the_whole_log(secured: SecuredKafka, admin: AdminClient) -> None:
    small, deadline = ScramMechanism.SCRAM_SHA_256, time.monotonic() + 60
    _set(admin, "before", small, "password")
    while (snapshot := _checkpoint(secured)) is None:
        assert time.monotonic() < deadline, "no snapshot was taken"
        _set(admin, "before", small, "password")
    _set(admin, "after", small, "password")
    whole = _folded(secured, None)
    assert _folded(secured, snapshot) == whole
    assert {("before", "SCRAM-SHA-256"), ("after", "SCRAM-SHA-256")} <= set(whole)


@pytest.mark.soak
def test_a_log_that_begins_at_a_snapshot(secured: SecuredKafka, admin: AdminClient, repo: Filled) -> None:
    small, deadline = ScramMechanism.SCRAM_SHA_256, time.monotonic() + 120
    _set(admin, "early", small, "early-password")
    _set(admin, "removed-early", small, "x")
    _delete(admin, "removed-early", small)
    number = 0
    while _log_start(secured) == 0:
        assert time.monotonic() < deadline, "the metadata log did not let go of its beginning"
        number += 1
        _set(admin, "busy", small, f"password-{number}", 4096)
    _set(admin, "late", small, "late-password")
    repo.run(*_backup(secured, "--controllers", f"127.0.0.1:{secured.controller_port}"))
    found = _opened(repo)
    _expect(found["early", "SCRAM-SHA-256"], _derived(small, "early-password"))
    _expect(found["busy", "SCRAM-SHA-256"], _derived(small, f"password-{number}"))
    _expect(found["late", "SCRAM-SHA-256"], _derived(small, "late-password"))
    assert ("removed-early", "SCRAM-SHA-256") not in found


def test_credentials_that_nobody_asked_for_are_told(secured: SecuredKafka, repo: Filled) -> None:
    arguments = ("--bootstrap-servers", secured.bootstrap, "--topics", "open", "--source", "prod")
    for more in (("--dry-run",), ()):
        done = json.loads(repo.run("kafka", "backup", *arguments, *more, "--json").stdout)
        (told,) = [f for f in done["findings"] if f["code"] == "scram-left-out"]
        assert told["severity"] == "note"
        assert "alice" in told["what"]
    assert not list(repo.root.glob("sources/prod/backups/*/attachments/scram.*"))


@contextlib.contextmanager
def _unchanged(repo: Filled) -> Iterator[None]:
    before = tree(repo.root)
    yield
    assert tree(repo.root) == before


def test_wrong_wishes_change_nothing(secured: SecuredKafka, repo: Filled) -> None:
    plain = ("kafka", "backup", "--bootstrap-servers", secured.bootstrap, "--topics", "open", "--source", "prod")
    (nobody,) = free_ports(1)
    with _unchanged(repo):
        said = one_error(repo.run(*plain, "--scram-to", "age1nonsense", code=40).stderr)
        assert "age1nonsense" in said
        said = one_error(repo.run(*plain, "--scram-to", str(KEY), code=40).stderr)
        assert str(KEY)[:30] not in said
        assert "--scram-to" in one_error(repo.run(*plain, "--controllers", "127.0.0.1:1", code=40).stderr)
        said = one_error(repo.run(*_backup(secured, "--controllers", f"127.0.0.1:{nobody}"), code=51).stderr)
        assert f"127.0.0.1:{nobody}" in said
        said = one_error(repo.run(*_backup(secured, "--controllers", secured.bootstrap), code=40).stderr)
        assert "controllers" in said


def test_a_user_without_the_right(secured: SecuredKafka, repo: Filled) -> None:
    client = secured.sasl_file("SASL_SSL", "SCRAM-SHA-256")
    wanted = ("--topics", "open", "--source", "prod", "--scram-to", RECIPIENT)
    with _unchanged(repo):
        said = one_error(repo.run("kafka", "backup", "--command-config", str(client), *wanted, code=52).stderr)
        assert "DescribeQuorum" in said
