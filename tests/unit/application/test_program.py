"""The program of an application that is called or written wrongly: an error with code and remedy, never a traceback."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.application import Application
from logkeep.application.application_process import LogLines
from logkeep.application.data_directory import open_directory
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.errors import StoreLocationMissing
from logkeep.model.time import utc_now
from logkeep.repository.chain.commits import SourceRef
from tests.support.processes import wait_for


def _refused(application: Application, *arguments: str, code: int = 40) -> None:
    with pytest.raises(SystemExit) as ended:
        application.main(arguments)
    assert ended.value.code == code


def _with_two_handlers() -> Application:
    made = Application("shop")
    for _ in range(2):
        made.on("put")(lambda _command, _state, _context: None)
    return made


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Application("my shop"), "'my shop' is not a name"),
        (lambda: Application("shop", partitions=0), "0 partitions"),
        (_with_two_handlers, "two handlers for 'put'"),
    ],
)
def test_a_mistake_in_the_program_is_told_when_it_runs(
    made: Callable[[], Application], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _refused(made(), "state", "key", "--data", "nowhere")
    told = capsys.readouterr().err
    assert words in told
    assert "\n  try: " in told


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--repository", "s3://"), "no bucket"),
        (("--repository", "backups", "--source", "a b"), "'a b' is not a source name"),
    ],
)
def test_a_repository_that_can_never_open_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], words: str
) -> None:
    _refused(Application("shop"), "run", "--data", str(tmp_path / "data"), *flags)
    assert words in capsys.readouterr().err


def test_a_damaged_document_is_not_for_the_verbs_of_a_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "application.json").write_text("{")
    _refused(Application("shop"), "state", "key", "--data", str(tmp_path), code=10)
    assert "`logkeep app restore`" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "data"])
def test_a_data_directory_that_cannot_be_made_is_refused(
    tmp_path: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    _refused(Application("shop"), "run", "--data", str(tmp_path / "file" / below))
    assert "the data directory cannot be made (Not a directory)" in capsys.readouterr().err


def test_a_repository_that_does_not_open_is_told_once_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def opened() -> SourceRef:
        raise StoreLocationMissing("there is no such directory", subject="/no/such")

    runtime = Runtime(
        Application("shop", partitions=2),
        open_directory(tmp_path, "shop", 2, utc_now()),
        RuntimeOptions(open_place=opened),
    )
    runtime.start()
    try:
        told = "no backup can be taken until the repository opens: "
        wait_for(lambda: told in caplog.text, "the warning")
        assert runtime.facts().repository == ""
        assert (caplog.text.count(told), "/no/such" in caplog.text) == (1, True)
    finally:
        runtime.stop()


def test_a_value_controls_neither_the_terminal_nor_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b]0;owned\x07\n2026-11-19 backup completed\u202e"
    _refused(Application("shop"), "state", "key", "--data", str(tmp_path / hostile))
    told = capsys.readouterr().err
    assert told.count("\n") == 2
    assert told.replace("\n", "").isprintable()
    lines = LogLines("%(levelname)s %(message)s")
    ended = (ValueError, ValueError(hostile), None)
    record = logging.LogRecord("x", logging.WARNING, "", 0, "about %s", (hostile,), ended)
    first, *others = lines.format(record).split("\n")
    assert first.startswith("WARNING about \\x1b]0;owned")
    assert all(line.startswith("  ") for line in others)
    assert "".join([first, *others]).isprintable()


def test_a_directory_that_was_restored_and_never_started_is_not_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A restore brings logs and snapshots; the state is made from them at the next start."""
    open_directory(tmp_path, "shop", 2, utc_now())
    _refused(Application("shop", partitions=2), "state", "key", "--data", str(tmp_path))
    told = capsys.readouterr().err
    assert "has no state yet" in told
    assert "try: start the application" in told
