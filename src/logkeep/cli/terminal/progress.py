"""Progress of a long run: a bar on a terminal, a line now and then elsewhere, nothing with --quiet.

All are `ProgressSink`s. The clock is an argument, so that tests need not wait. The bar is redrawn at most four times a
second, because a faster bar shows nothing more.
"""

from collections.abc import Callable

from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.text import cell_width, duration, size
from logkeep.model.work import NoProgress, ProgressSink

Monotonic = Callable[[], float]

REDRAW_S = 0.25
LINE_S = 30.0
_BAR_WIDTH = 24


def choose_progress(mode: str, console: Console, monotonic: Monotonic, *, quiet: bool) -> ProgressSink:
    """`mode` is auto, always (also with -q) or never."""
    if mode == "never" or (quiet and mode != "always"):
        return NoProgress()
    if console.err_look.width is not None:
        return Bar(console, monotonic)
    return Lines(console, monotonic)


class _Counts:
    """What both kinds count: totals and times, and the text made of them."""

    def __init__(self, console: Console, monotonic: Monotonic) -> None:
        self._console, self._monotonic = console, monotonic
        self._label, self._total_bytes, self._total_units = "", 0, 0
        self._bytes, self._units, self._failed = 0, 0, 0
        self._started = self._shown = 0.0

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self._label, self._total_bytes, self._total_units = label, total_bytes, total_units
        self._bytes = self._units = self._failed = 0
        self._started = self._shown = self._monotonic()
        self._show()

    def _record(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self._bytes, self._units, self._failed = done_bytes, done_units, failed_attempts

    def _show(self) -> None:
        raise NotImplementedError

    def _elapsed(self) -> float:
        return max(self._monotonic() - self._started, 0.0)

    def _share(self) -> float:
        """Between 0 and 1, by bytes where they are known. At most 1, as an estimated total may be too low."""
        total, done = (self._total_bytes, self._bytes) if self._total_bytes else (self._total_units, self._units)
        return min(done / total, 1.0) if total else 1.0

    def _words(self, *, ended: bool = False) -> str:
        parts = [f"{self._units}/{self._total_units} units"]
        if self._total_bytes:
            parts.append(f"{size(self._bytes)} of {size(self._total_bytes)}")
        elapsed, share = self._elapsed(), self._share()
        if elapsed >= 1.0 and self._bytes and self._total_bytes:
            parts.append(f"{size(self._bytes / elapsed)}/s")
        if elapsed >= 2.0 and 0.01 <= share < 1.0 and not ended:
            parts.append(f"ETA {duration(elapsed * (1 - share) / share)}")
        if self._failed:
            parts.append(f"{self._failed} attempts failed")
        return ", ".join(parts)

    def _summary(self) -> str:
        return f"{self._label}: {self._words(ended=True)}, took {duration(self._elapsed())}"


class Bar(_Counts):
    """One live line at the bottom of the terminal."""

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self._record(done_bytes, done_units, failed_attempts)
        if self._monotonic() - self._shown >= REDRAW_S:
            self._shown = self._monotonic()
            self._show()

    def finish(self) -> None:
        self._console.live("")
        self._console.note(self._summary())

    def _show(self) -> None:
        look = self._console.err_look
        filled = int(self._share() * _BAR_WIDTH)
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        head, words = f"{self._label} {bar} {self._share():4.0%}", self._words().split(", ")
        while look.width is not None and cell_width(look.text(f"{head}  {', '.join(words)}")) >= look.width and words:
            words.pop(0)  # the last part is the ETA, which matters most
        line = look.text(f"{head}  {', '.join(words)}")
        while look.width is not None and cell_width(line) >= look.width:
            line = line[:-1]
        self._console.live(line)


class Lines(_Counts):
    """For log files and cron mails: a line at the start, every 30 s, when an attempt fails, and at the end."""

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        changed = failed_attempts > self._failed
        self._record(done_bytes, done_units, failed_attempts)
        if changed or self._monotonic() - self._shown >= LINE_S:
            self._shown = self._monotonic()
            self._show()

    def finish(self) -> None:
        self._console.note(self._summary())

    def _show(self) -> None:
        self._console.note(f"{self._label}: {self._share():.0%}, {self._words()}")
