"""Colour rules, questions and progress, on a pseudo-terminal where it matters."""

import io
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from logkeep.cli.terminal.console import Console, use_colour
from logkeep.cli.terminal.progress import ProgressBar, ProgressLines, choose_progress
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import Declined
from logkeep.model.work import NoProgress
from tests.support.cli.processes import TRIAL, clean_environment


class Ticks:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _console(width: int | None = 100, reply: str = "", *, interactive: bool = True) -> tuple[Console, io.StringIO]:
    err = io.StringIO()
    look = TerminalStyle(unicode=True, width=width)
    console = Console(io.StringIO(), err, look=look, err_look=look, interactive=interactive, read=io.StringIO(reply))
    return console, err


@pytest.mark.parametrize(
    ("color", "environ", "terminal", "wanted"),
    (
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ),
)
def test_colour(color: str, environ: dict[str, str], terminal: bool, wanted: bool) -> None:
    assert use_colour(color, environ, terminal=terminal) is wanted


@pytest.mark.parametrize(
    ("reply", "agreed"), (("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False))
)
def test_questions(reply: str, agreed: bool) -> None:
    console, _ = _console(reply=reply)
    if agreed:
        console.confirm("go on?")
    else:
        with pytest.raises(Declined):
            console.confirm("go on?")


def test_typed_confirmation() -> None:
    _console(reply="prod\n")[0].confirm("overwrite?", typed="prod")
    with pytest.raises(Declined):
        _console(reply="y\n")[0].confirm("overwrite?", typed="prod")


def test_nobody_to_ask_names_the_flag() -> None:
    console, err = _console(interactive=False, reply="y\n")
    with pytest.raises(Declined) as caught:
        console.confirm("go on?", flag="--force")
    assert "--force" in caught.value.remedy
    assert err.getvalue() == ""


def test_the_bar_is_drawn_at_most_four_times_a_second() -> None:
    console, err = _console()
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 1000, 10)
    for step in range(1, 101):
        ticks.now += 0.02
        bar.update(step * 10, step // 10, 0)
    bar.finish()
    assert err.getvalue().count("\r\x1b[K") <= 2 * 4 + 2


_LONG, _SHORT = "██████░░░░░░░░░░░░░░░░░░  25%", "██░░░░░░░░  25%"
_REST = "1.0 MiB of 4.0 MiB, 102.4 KiB/s, ETA 30 s, 2 attempts failed"


@pytest.mark.parametrize(
    ("width", "line"),
    ((120, f"copy {_LONG}  1/4 units, {_REST}"), (100, f"copy {_SHORT}  1/4 units, {_REST}"),
     (80, f"copy {_SHORT}  102.4 KiB/s, ETA 30 s, 2 attempts failed"), (20, "copy ██░░░░░░░░  2…")),
)  # fmt: skip
def test_the_bar_shows_rate_eta_and_units(width: int, line: str) -> None:
    """What does not fit: the bar is shorter, then whole words go from the front; when it will end is the last to go."""
    console, err = _console(width=width)
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 4 * 1024**2, 4)
    ticks.now += 10
    bar.update(1024**2, 1, 2)
    assert err.getvalue().rpartition("\x1b[K")[2].rstrip() == line


def test_a_live_line_that_would_wrap_is_cut_off() -> None:
    """Only its last row could be erased."""
    console, err = _console(width=20)
    console.live("testing the store: 3 of 20 checks; names are listed in order")
    assert err.getvalue() == "testing the store:…"


def _words(err: io.StringIO) -> str:
    """What the bar says now, behind the share."""
    return err.getvalue().rpartition("\x1b[K")[2].partition("%  ")[2]


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    """An average since the start would show a stalled run, or one that Spark made faster, as what it was before."""
    console, err = _console(width=200)
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 1000 * 1024**2, 4)
    for step in range(1, 41):
        ticks.now += 1
        bar.update(step * 1024**2, 0, 0)
    assert _words(err) == "0/4 units, 40.0 MiB of 1000.0 MiB, 1.0 MiB/s, ETA 16 min"
    for step in range(1, 11):
        ticks.now += 1
        bar.update((40 + 20 * step) * 1024**2, 0, 0)
    assert _words(err) == "0/4 units, 240.0 MiB of 1000.0 MiB, 20.0 MiB/s, ETA 38 s"
    for _ in range(11):
        ticks.now += 1
        bar.update(240 * 1024**2, 0, 0)
    assert _words(err) == "0/4 units, 240.0 MiB of 1000.0 MiB, 0 B/s"
    ticks.now += 1
    bar.update(100 * 1024**2, 0, 1)
    assert "/s" not in _words(err), "an attempt is repeated: what was done is lost"


def test_no_eta_of_hours_while_a_run_has_stalled() -> None:
    console, err = _console(width=200)
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("restore", 100 * 1024**2, 4)
    for step in range(1, 11):
        ticks.now += 1
        bar.update(9 * step * 1024**2, 0, 0)
    assert "ETA 1.1 s" in _words(err)
    for step in range(1, 11):
        ticks.now += 1
        bar.update(90 * 1024**2 + step, 0, 0)
    assert _words(err) == "0/4 units, 90.0 MiB of 100.0 MiB, 1 B/s"
    ticks.now += 5
    bar.update(95 * 1024**2, 0, 0)
    assert "ETA" in _words(err)


def test_no_eta_before_it_means_something() -> None:
    console, err = _console(width=200)
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 100 * 1024**2, 4)
    for step in range(1, 5):
        ticks.now += 1
        bar.update(step * 1024**2, 0, 0)
        assert "ETA" not in _words(err)
    ticks.now += 1
    bar.update(5 * 1024**2, 0, 0)
    assert "1.0 MiB/s, ETA 1 min 35 s" in _words(err)


def test_a_line_while_spark_starts_and_no_eta_before_it_works() -> None:
    console, err = _console(width=200)
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 100 * 1024**2, 4)
    bar.waiting("Spark is starting")
    assert _words(err) == "0/4 units, 0 B of 100.0 MiB, Spark is starting"
    for step in range(1, 11):
        ticks.now += 1
        bar.update(step * 1024**2, 0, 0)
    assert _words(err) == "0/4 units, 10.0 MiB of 100.0 MiB, 1.0 MiB/s, Spark is starting"
    bar.waiting("")
    assert _words(err) == "0/4 units, 10.0 MiB of 100.0 MiB", "the rate of the next seconds is another one"
    for step in range(1, 6):
        ticks.now += 1
        bar.update((10 + 9 * step) * 1024**2, 0, 0)
    assert _words(err) == "0/4 units, 55.0 MiB of 100.0 MiB, 9.0 MiB/s, ETA 5.0 s"


def test_a_log_has_a_line_when_spark_starts() -> None:
    console, err = _console(width=None)
    lines = ProgressLines(console, Ticks())
    lines.start("copy", 0, 4)
    lines.waiting("Spark is starting")
    lines.waiting("Spark is starting")
    assert err.getvalue().splitlines() == ["copy: 0%, 0/4 units", "copy: 0%, 0/4 units, Spark is starting"]


def test_bytes_that_are_sent_and_compared_are_not_added_up_silently() -> None:
    console, err = _console(width=200)
    bar = ProgressBar(console, Ticks())
    bar.start("restore and compare", 2 * 1024**3, 4)
    assert _words(err) == "0/4 units, 0 B of 2.0 GiB sent and compared"
    bar.finish()
    assert "0 B of 2.0 GiB sent and compared, took" in err.getvalue()


def test_notes_step_around_the_bar() -> None:
    console, err = _console()
    bar = ProgressBar(console, Ticks())
    bar.start("copy", 0, 1)
    drawn = err.getvalue()
    console.note("hello")
    assert err.getvalue() == f"{drawn}\r\x1b[Khello\n{drawn}"


def test_lines_every_30_seconds_and_when_something_fails() -> None:
    console, err = _console(width=None)
    ticks = Ticks()
    lines = ProgressLines(console, ticks)
    lines.start("copy", 1000, 10)
    for step in range(61):
        ticks.now += 1
        lines.update(step, 0, 1 if step >= 45 else 0)
    lines.finish()
    shown = err.getvalue().splitlines()
    assert len(shown) == 1 + 1 + 1 + 1  # start, 30 s, the failure (which starts the 30 s anew), end
    assert "\r" not in err.getvalue()


def test_bytes_may_run_back_and_totals_may_be_wrong() -> None:
    console, err = _console()
    ticks = Ticks()
    bar = ProgressBar(console, ticks)
    bar.start("copy", 100, 1)
    for done in (50, 20, 400):
        ticks.now += 3
        bar.update(done, 0, 0)
    assert "100%" in err.getvalue()
    assert "400%" not in err.getvalue()


@pytest.mark.parametrize(
    ("mode", "quiet", "width", "kind"),
    (
        ("auto", False, 80, ProgressBar),
        ("auto", False, None, ProgressLines),
        ("auto", True, 80, NoProgress),
        ("always", True, None, ProgressLines),
        ("never", False, 80, NoProgress),
    ),
)
def test_choice_of_progress(mode: str, quiet: bool, width: int | None, kind: type) -> None:
    assert type(choose_progress(mode, _console(width)[0], Ticks(), quiet=quiet)) is kind


def _on_terminal(tmp_path: Path, *arguments: str, reply: str = "", **env: str) -> tuple[int, str]:
    """Run on a pseudo-terminal and return exit code and all that was shown."""
    leader, follower = pty.openpty()
    environment = clean_environment(tmp_path, TERM="xterm", COLUMNS="100", **env)
    process = subprocess.Popen(
        [*TRIAL, *arguments], env=environment, cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    os.write(leader, reply.encode())
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:
        pass  # Linux reports the closed other side of a pseudo-terminal as an error
    finally:
        os.close(leader)
        code = process.wait(120)
    return code, shown.decode().replace("\r\n", "\n")


def test_prompt_on_a_terminal(tmp_path: Path) -> None:
    code, shown = _on_terminal(tmp_path, "change", "-r", "x", reply="y\n")
    assert code == 0
    assert "change x? [y/N]" in shown
    assert shown.endswith("changed x …\n")
    code, shown = _on_terminal(tmp_path, "change", "-r", "x", reply="n\n")
    assert code == 3
    assert "nothing was changed" in shown


def test_bar_on_a_terminal_leaves_a_clean_screen(tmp_path: Path) -> None:
    code, shown = _on_terminal(tmp_path, "work")
    assert code == 0
    assert "░░░" in shown
    final = [re.sub(r".*\x1b\[K", "", line) for line in shown.split("\n")]
    assert final[-2:] == ["worked", ""]
    assert not any("░" in line for line in final)
    code, shown = _on_terminal(tmp_path, "work", LANG="C", NO_COLOR="1")
    assert "....." in shown
    assert shown.isascii()


def test_errors_are_coloured_on_a_terminal_unless_no_color(tmp_path: Path) -> None:
    assert "\x1b[31merror:\x1b[0m" in _on_terminal(tmp_path, "end", "x")[1]
    assert "\x1b[" not in _on_terminal(tmp_path, "end", "x", NO_COLOR="1")[1]


def test_a_number_stays_beside_its_unit() -> None:
    said = TerminalStyle(width=30).prose("filling up to 23 holes takes 1 s, and 10 KiB")
    assert said == "filling up to 23 holes takes\n1 s, and 10 KiB"
