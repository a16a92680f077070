"""Secrets come by reference, from places that only their owner can read, and never show themselves."""

import json
import os
import pickle
import sys
from pathlib import Path

import msgspec
import pytest

from logkeep.config.secrets import CommandReference, EnvironmentReference, FileReference, fetch
from logkeep.errors import ConfigError
from logkeep.file_owners import OriginFile
from logkeep.model.redaction import names_credential, redact, redact_values
from logkeep.model.secret import Secret
from logkeep.secret_reading import read_content

CANARY = 'kanari/"Ä"+=%&8842'


def _private(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_secret_never_shows_itself() -> None:
    secret = Secret(CANARY)
    for shown in (str(secret), repr(secret), f"{secret}", f"{secret:>10}", f"{[secret]}", "%s" % secret):  # noqa: UP031
        assert CANARY not in shown
        assert "***" in shown
    assert secret.reveal() == CANARY
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps({"a": secret})
    with pytest.raises(TypeError):
        msgspec.json.encode({"a": secret})
    assert not hasattr(secret, "__dict__")


def test_file(tmp_path: Path) -> None:
    path = _private(tmp_path / "pw", f"{CANARY}\n")
    assert fetch(FileReference(path), {}).reveal() == CANARY


@pytest.mark.parametrize("mode", (0o640, 0o604, 0o660, 0o644))
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = _private(tmp_path / "pw", CANARY, mode)
    with pytest.raises(ConfigError, match="can be read by others") as caught:
        fetch(FileReference(path), {})
    assert caught.value.remedy == f"chmod 600 {path}"
    assert CANARY not in f"{caught.value}"


def test_command_runs_without_a_shell() -> None:
    argv = (sys.executable, "-c", "import sys; print(sys.argv[1:])", "a b", "$HOME;x")
    assert fetch(CommandReference(argv), os.environ).reveal() == "['a b', '$HOME;x']"


def test_a_failing_command_tells_its_code_and_not_its_output() -> None:
    argv = (sys.executable, "-c", f"import sys; print({CANARY!r}, file=sys.stderr); sys.exit(7)")
    with pytest.raises(ConfigError, match="ended with code 7") as caught:
        fetch(CommandReference(argv), os.environ)
    assert CANARY not in f"{caught.value}{caught.value.remedy}"


def test_a_command_that_hangs_or_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did not end within 0\.2 s"):
        fetch(CommandReference((sys.executable, "-c", "import time; time.sleep(60)")), {}, timeout_s=0.2)
    with pytest.raises(ConfigError, match="cannot be run"):
        fetch(CommandReference((str(tmp_path / "none"),)), {})


def _origin(path: Path) -> OriginFile:
    return read_content(path, private=False, largest_bytes=100).origin


@pytest.mark.parametrize("mode", (0o622, 0o602))
def test_a_command_from_a_file_that_others_can_change_is_not_run(tmp_path: Path, mode: int) -> None:
    ran = tmp_path / "ran"
    file = _private(tmp_path / "logkeep.yaml", "", mode)
    unsafe = _origin(file)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can change it: every user can write to the file"):
        fetch(CommandReference(("touch", str(ran)), unsafe), os.environ)  # safe again, but not when it was read
    assert not ran.exists()
    with pytest.raises(ConfigError, match="the secret is empty"):
        fetch(CommandReference(("touch", str(ran)), _origin(file)), os.environ)
    assert ran.exists()


def test_a_command_from_a_file_below_a_directory_that_others_can_change_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "open" / "mine").mkdir(parents=True)
    file = _private(tmp_path / "open" / "mine" / "client.properties", "")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match=f"every user can write to {tmp_path}/open "):
        fetch(CommandReference(("echo", "x"), _origin(file)), os.environ)
    (tmp_path / "open").chmod(0o1777)
    assert fetch(CommandReference(("echo", "x"), _origin(file)), os.environ).reveal() == "x"


def test_environment() -> None:
    assert fetch(EnvironmentReference("PW"), {"PW": CANARY}).reveal() == CANARY
    with pytest.raises(ConfigError, match="not set"):
        fetch(EnvironmentReference("PW"), {})


@pytest.mark.parametrize(
    ("content", "what"), ((b"", "empty"), (b"\n", "empty"), (b"\xff", "UTF-8"), (b"x" * 70_000, "larger"))
)
def test_secrets_that_are_none(tmp_path: Path, content: bytes, what: str) -> None:
    path = _private(tmp_path / "pw", "")
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=what):
        fetch(FileReference(path), {})


@pytest.mark.parametrize(
    "text",
    (
        CANARY,
        f"before {CANARY} after",
        json.dumps({"a": CANARY}),
        repr({"a": CANARY}),
        f"https://host/?p={'kanari%2F%22%C3%84%22%2B%3D%25%268842'}",
    ),
)
def test_known_secrets_are_removed_in_every_spelling(text: str) -> None:
    Secret(CANARY)
    shown = redact(text)
    assert "kanari" not in shown
    assert "8842" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    (
        ("AKIAIOSFODNN7EXAMPLE is", "*** is"),
        ("aws_secret_access_key = abc/def next", "aws_secret_access_key = *** next"),
        ('{"password": "a b", "n": 1}', '{"password": "***", "n": 1}'),
        ("ssl.keystore.password=abc", "ssl.keystore.password=***"),
        ('sasl.jaas.config=x required username="u" password="p";', "sasl.jaas.config=***"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("got Bearer abcdefghijk.lmn", "got Bearer ***"),
        ("https://user:pw@host/x", "https://***@host/x"),
        ("az://c/p?sig=abc&x=1", "az://c/p?sig=***&x=1"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", "***"),
        ("password_file=/etc/pw", "password_file=/etc/pw"),
        ("s3://bucket/prefix?region=eu", "s3://bucket/prefix?region=eu"),
        ("the secret file can be read", "the secret file can be read"),
        ("user@example.org wrote", "user@example.org wrote"),
    ),
)
def test_what_looks_like_a_credential_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_redaction_of_nested_values() -> None:
    value = {"password": 123456, "list": ["Bearer abcdefghijk", 5], "n": None, "inner": {"api_key": ["x"]}, "b": b"x"}
    assert redact_values(value) == {
        "password": "***", "list": ["Bearer ***", 5], "n": None, "inner": {"api_key": "***"}, "b": "x"
    }  # fmt: skip


def test_telling_keys() -> None:
    assert names_credential("spark.hadoop.fs.s3a.secret.key")
    assert names_credential("sasl.jaas.config")
    assert not names_credential("spark.executor.memory")
    assert not names_credential("password_file")
