"""Configuration that another user of the host left where an operator works: nothing in it is used, nothing is run."""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.support.cli.filled_repository import backed_up, new_repository
from tests.support.cli.forker import run
from tests.support.cli.processes import REAL, clean_environment, logkeep
from tests.support.other_user import give_to_other

ZKBACKUP = (REAL[0], "-m", "logkeep.cli.zkbackup")
EVIL = "engine: {kind: spark, spark_conf: {spark.python.daemon.module: evilmod}}\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory of ours that holds a repository."""
    (tmp_path / "repo").mkdir(mode=0o700)
    new_repository(LocalStore(tmp_path / "repo"))
    return tmp_path


def _config(directory: Path, text: str = "", name: str = "logkeep.yaml") -> Path:
    path = directory / name
    path.write_text(text or f"repository: {{url: 'file://{directory}/repo'}}\n")
    path.chmod(0o644)
    return path


def test_our_own_file_is_used(work: Path) -> None:
    _config(work)
    assert logkeep("list", home=work).returncode == 0


@pytest.mark.parametrize("whose", ("file", "directory"))
def test_a_file_of_another_user_is_not_used_unless_it_is_named(work: Path, whose: str) -> None:
    path = _config(work)
    give_to_other(path if whose == "file" else work)
    refused = logkeep("list", home=work)
    assert refused.returncode == 40
    assert "is not used" in refused.stderr
    assert "--config ./logkeep.yaml" in refused.stderr
    assert logkeep("list", "--config", "./logkeep.yaml", home=work).returncode == 0
    assert logkeep("list", home=work, env={"LOGKEEP_CONFIG": "logkeep.yaml"}).returncode == 0


@pytest.mark.parametrize("mode", (0o777, 0o1777))
def test_a_file_or_directory_that_every_user_can_write_to_is_not_used(work: Path, mode: int) -> None:
    path = _config(work)
    path.chmod(0o666)
    assert "every user can write to it (mode 0666)" in logkeep("list", home=work).stderr
    path.chmod(0o644)
    work.chmod(mode)  # the sticky bit keeps others from replacing a file, but they may have put it there
    refused = logkeep("list", home=work)
    assert refused.returncode == 40
    assert f"every user can write to its directory (mode {mode:04o})" in refused.stderr


def test_code_for_spark_does_not_come_from_the_working_directory(work: Path) -> None:
    (work / "evilmod.py").write_text(f"open({str(work / 'ran')!r}, 'w').write('x')\n")
    path = _config(work, EVIL)
    backed_up(open_repository(LocalStore(work / "repo")).place("prod"), {0: 6})
    ours = logkeep("verify", "--level", "data", "-r", f"file://{work}/repo", home=work)
    assert (ours.returncode, (work / "ran").exists()) == (40, False)
    assert "spark.python.daemon.module may name code" in ours.stderr
    give_to_other(path)
    assert logkeep("config", "show", home=work).returncode == 40
    named = logkeep("config", "show", "--config", "./logkeep.yaml", home=work)
    assert "spark.python.daemon.module=evilmod" in named.stdout


def test_a_named_pipe_of_another_user_does_not_block(work: Path) -> None:
    os.mkfifo(path := work / "logkeep.yaml")
    path.chmod(0o666)
    give_to_other(path)
    assert logkeep("list", home=work).returncode == 40


def test_zkbackup_uses_no_file_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "bundles").mkdir()
    path = _config(tmp_path, f"backup: {{base_dir: {tmp_path}/bundles}}\n", "zkbackup.yaml")

    def listed(*more: str) -> tuple[int, str]:
        done = run([*ZKBACKUP, "list", *more], env=clean_environment(tmp_path), cwd=tmp_path, timeout=60)
        return done.returncode, done.stderr

    assert listed()[0] == 0
    give_to_other(path)
    code, told = listed()
    assert (code, "--config ./zkbackup.yaml" in told) == (40, True)
    assert listed("--config", "./zkbackup.yaml")[0] == 0


def test_a_token_command_is_not_run_after_its_file_was_replaced(work: Path) -> None:
    """The file is another user's when it is read, and a link to a file of ours when the token is needed."""
    theirs = work / "theirs"
    theirs.mkdir()
    path, ran, innocent = theirs / "client.properties", work / "ran", work / "innocent"
    innocent.write_text("")
    innocent.chmod(0o644)

    def write(owned_by_other: bool) -> None:
        path.unlink(missing_ok=True)
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"logkeep.oauthbearer.token.command=touch {ran}\n"
        )
        path.chmod(0o644)
        if owned_by_other:
            give_to_other(path, theirs)

    def swap() -> None:
        path.unlink()
        path.symlink_to(innocent)

    def backup(swap: Callable[[], None]) -> str:
        with _broker(before_handshake_reply=swap) as address:
            arguments = ("--command-config", str(path), "--bootstrap-servers", address, "--retry-for", "1s")
            done = logkeep("kafka", "backup", *arguments, "-r", f"file://{work}/repo", home=work)
        assert done.returncode != 0
        return done.stderr

    write(owned_by_other=True)
    assert "others can change it" in backup(swap)
    assert not ran.exists()
    theirs.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(theirs, 0, 0)
    write(owned_by_other=False)
    assert "others can change it" not in backup(lambda: None)  # our own file: the command is run
    assert ran.exists()


@contextmanager
def _broker(before_handshake_reply: Callable[[], None]) -> Iterator[str]:
    """Answers ApiVersions, then SaslHandshake after an action, and refuses every token."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, before_handshake_reply), daemon=True)
        thread.start()
        yield "{}:{}".format(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(server: socket.socket, before_handshake_reply: Callable[[], None]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the test is over
            return
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(4):
                (size,) = struct.unpack("!i", head)
                api, _version, correlation = struct.unpack("!hhi", stream.read(size)[:8])
                if api == 17:
                    before_handshake_reply()
                body = struct.pack("!i", correlation) + _REPLIES[api]
                connection.sendall(struct.pack("!i", len(body)) + body)


_SPOKEN = ((18, 0, 3), (17, 1, 1), (36, 1, 1), (3, 9, 12))
_REPLIES = {
    18: struct.pack("!hB", 0, len(_SPOKEN) + 1)
    + b"".join(struct.pack("!hhhB", *each, 0) for each in _SPOKEN)
    + bytes(5),
    17: struct.pack("!hih", 0, 1, 11) + b"OAUTHBEARER",
    36: struct.pack("!hhiq", 58, -1, 0, 0),
}
"""By API key: ApiVersions 3, SaslHandshake 1, SaslAuthenticate 1 with the error "authentication failed"."""
