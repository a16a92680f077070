"""A server that exits while it starts: for its files, or because this machine failed it."""

from pathlib import Path

import pytest

from logkeep.embedded.process import ServerProcess
from logkeep.embedded.refusal import machine_trouble, without_frames
from logkeep.errors import ServerFailed, ServerRefused

DAMAGED = ["ERROR Unexpected exception, exiting abnormally", "java.io.IOException: CRC corruption"]


def started(tmp_path: Path, script: str, timeout_s: float = 30.0) -> ServerFailed:
    """What a server that does this, and never answers, fails with."""
    server = ServerProcess("Made", ["/bin/sh", "-c", script], tmp_path / "server.log", cwd=tmp_path)
    with pytest.raises(ServerFailed) as caught:
        server.start().wait_until(lambda: False, timeout_s)
    assert server.pid is None
    return caught.value


def test_one_that_ends_by_itself_refuses_its_files_and_its_reason_is_kept(tmp_path: Path) -> None:
    frames = "".join(f"\\tat org.apache.Some.method{n}(Some.java)\\n" for n in range(40))
    error = started(tmp_path, f"printf '{DAMAGED[0]}\\n{DAMAGED[1]}\\n{frames}'; exit 1")
    assert isinstance(error, ServerRefused)
    assert error.__notes__ == ["\n".join(DAMAGED)]


@pytest.mark.parametrize("script", ["kill -9 $$", "kill -TERM $$", "exit 143"])
def test_one_that_somebody_ended_says_nothing_of_its_files(tmp_path: Path, script: str) -> None:
    error = started(tmp_path, script)
    assert type(error) is ServerFailed
    assert "ended the server" in error.what


def test_nor_does_one_that_is_too_slow(tmp_path: Path) -> None:
    error = started(tmp_path, "exec sleep 60", timeout_s=0.2)
    assert type(error) is ServerFailed
    assert "did not answer" in error.what


def test_what_an_earlier_start_logged_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("java.net.BindException: Address already in use\n")
    assert isinstance(started(tmp_path, f"echo '{DAMAGED[0]}'; exit 1"), ServerRefused)


def test_nor_does_one_that_did_not_say_that_it_gave_up(tmp_path: Path) -> None:
    """A crash of Java, a class that a jar lacks, a script in its place: nobody may call that damage."""
    error = started(tmp_path, "echo 'java.lang.IllegalAccessError: class a cannot access class b'; exit 1")
    assert type(error) is ServerFailed
    assert "exited with 1" in error.what


@pytest.mark.parametrize(
    "line",
    [
        "[0.004s][warning][os,container] Duplicate cpuset controllers detected: Permission denied",
        "OpenJDK 64-Bit Server VM warning: Could not create /tmp/hsperfdata_u/7: Permission denied",
    ],
)
def test_what_java_complains_of_and_does_without_hides_no_refusal(line: str) -> None:
    assert machine_trouble(1, [line, *DAMAGED]) is None


@pytest.mark.parametrize(
    "line",
    [
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        "java.net.BindException: Address already in use",
        "java.io.IOException: No space left on device",
        "Error: Could not find or load main class org.apache.zookeeper.server.ZooKeeperServerMain",
        "Error occurred during initialization of VM",
    ],
)
def test_what_this_machine_lacks_is_told_with_a_remedy(line: str) -> None:
    trouble = machine_trouble(1, [*DAMAGED, line])
    assert trouble is not None
    assert line in trouble[0]
    assert trouble[1]
    assert machine_trouble(1, DAMAGED) is None


def test_calls_of_methods_do_not_push_the_reason_out() -> None:
    assert without_frames(["why", "\tat a.b(C.java:1)", "", "\t... 3 more", "Caused by: that"]) == [
        "why",
        "Caused by: that",
    ]
