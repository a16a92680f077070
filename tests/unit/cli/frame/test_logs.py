"""Logs: one root, redacted, as text or JSON, from our modules and from libraries."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.cli.frame.logs import choose_level, open_private, set_up_logs, take_down_logs
from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import ConfigError
from logkeep.model.secret import Secret

PLAIN = "geheimnis-2026"


@pytest.fixture
def err() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(err: io.StringIO) -> Console:
    look = TerminalStyle(unicode=True)
    return Console(err, err, look=look, err_look=look, interactive=False, read=io.StringIO())


@pytest.fixture(autouse=True)
def untouched_root() -> Iterator[None]:
    """pytest's own handlers come back, whatever a test did."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("logkeep").setLevel(logging.NOTSET)
    logging.captureWarnings(False)


@pytest.mark.parametrize(
    ("level", "quiet", "verbose", "to_file", "chosen"),
    (
        (None, False, 0, False, "warning"),
        (None, False, 0, True, "info"),
        ("error", False, 0, True, "error"),
        ("error", False, 1, False, "info"),
        (None, False, 2, False, "debug"),
        ("debug", True, 0, False, "error"),
    ),
)
def test_levels(level: str | None, quiet: bool, verbose: int, to_file: bool, chosen: str) -> None:
    assert choose_level(level, quiet=quiet, verbose=verbose, to_file=to_file) == chosen


def test_text_lines(console: Console, err: io.StringIO) -> None:
    set_up_logs(console, level="info", form="text", file=None)
    logging.getLogger("logkeep.store").info("retrying %s", "put", extra={"attempt": 2})
    logging.getLogger("logkeep.store").debug("not shown")
    moment, _, rest = err.getvalue().partition(" ")
    assert moment.endswith("Z")
    assert rest == "info    retrying put attempt=2 [logkeep.store]\n"


def test_json_lines_are_redacted_and_stay_json(console: Console, err: io.StringIO) -> None:
    Secret(PLAIN)
    set_up_logs(console, level="info", form="json", file=None)
    failure = RuntimeError(f"login {PLAIN}\nsasl.jaas.config=x password=y;")
    extra = {"password": "abc", "n": 1, "u": PLAIN}
    logging.getLogger("logkeep.x").error("failed with %s", PLAIN, exc_info=failure, extra=extra)
    event = json.loads(err.getvalue())
    assert PLAIN not in err.getvalue()
    assert (event["event"], event["password"], event["n"], event["u"]) == ("failed with ***", "***", 1, "***")
    assert "RuntimeError: login ***" in event["exception"]


def test_libraries_stay_at_warning(console: Console, err: io.StringIO) -> None:
    set_up_logs(console, level="debug", form="text", file=None)
    logging.getLogger("botocore").debug("Authorization: Basic abcdefgh")
    logging.getLogger("botocore").info("x")
    assert err.getvalue() == ""
    logging.getLogger("botocore").warning("signed with AKIAIOSFODNN7EXAMPLE")
    assert "signed with ***" in err.getvalue()


def test_fields_of_a_json_line_in_order(console: Console, err: io.StringIO) -> None:
    set_up_logs(console, level="info", form="json", file=None)
    logging.getLogger("logkeep.x").info("done", extra={"z": (1, None), "a": Path("/x"), "none": None})
    first, second = "plain", "with a failure"
    logging.getLogger("logkeep.x").info(first)
    logging.getLogger("logkeep.x").error(second, exc_info=ValueError("no"), stack_info=True)
    lines = [json.loads(line) for line in err.getvalue().splitlines()]
    assert [list(line) for line in lines] == [
        ["event", "level", "logger", "z", "a", "none", "timestamp"],
        ["event", "level", "logger", "timestamp"],
        ["event", "stack_info", "level", "logger", "timestamp", "exception"],
    ]
    assert (lines[0]["z"], lines[0]["a"], lines[0]["none"]) == ([1, None], "/x", None)
    assert lines[2]["exception"] == "ValueError: no"


def test_a_log_file_is_appended_to_and_closed(console: Console, err: io.StringIO, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    for text in ("one", "two"):
        handler = set_up_logs(console, level="info", form="text", file=path)
        logging.getLogger("logkeep").info(text)
        take_down_logs(handler)
    assert [line.split()[2] for line in path.read_text().splitlines()] == ["one", "two"]
    assert err.getvalue() == ""
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_log_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(ConfigError, match="cannot be written"):
        open_private(tmp_path / "link")
    assert not (tmp_path / "target").exists()
