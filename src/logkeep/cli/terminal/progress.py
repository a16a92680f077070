"""Progress of a long run: a bar on a terminal, a line now and then elsewhere, nothing with --quiet.

All are `ProgressSink`s. The clock is an argument, so that tests need not wait. The bar is redrawn at most four times a
second, because a faster bar shows nothing more.
"""

from collections import deque
from collections.abc import Callable

from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.messages import ENGLISH, Translation
from logkeep.cli.terminal.text import cell_width, duration, size
from logkeep.model.work import COUNTED_BYTES, NoProgress, ProgressSink

Monotonic = Callable[[], float]

REDRAW_S = 0.25
LINE_S = 30.0
_BAR_WIDTH = 24
_SHORT_BAR_WIDTH = 10
_RECENT_S = 10.0
_LEAST_RATE_S = 1.0
_LEAST_ETA_S = 5.0
_LEAST_SHARE = 0.01
_STALLED = 0.1
"""Of the mean rate."""


def choose_progress(
    mode: str, console: Console, monotonic: Monotonic, *, quiet: bool, say: Translation = ENGLISH
) -> ProgressSink:
    """`mode` is auto, always (also with -q) or never."""
    if mode == "never" or (quiet and mode != "always"):
        return NoProgress()
    if console.err_look.width is not None:
        return ProgressBar(console, monotonic, say)
    return ProgressLines(console, monotonic, say)


class _Counts:
    """What both kinds count: totals and times, and the text made of them."""

    def __init__(self, console: Console, monotonic: Monotonic, say: Translation = ENGLISH) -> None:
        self._console, self._monotonic, self._say = console, monotonic, say
        self._label, self._total_bytes, self._total_units = "", 0, 0
        self._bytes, self._units, self._failed = 0, 0, 0
        self._started = self._shown = 0.0
        self._waiting = ""
        self._rate = RecentRate(0.0, 0)

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self._label, self._total_bytes, self._total_units = label, total_bytes, total_units
        self._bytes = self._units = self._failed = 0
        self._waiting = ""
        self._started = self._shown = self._monotonic()
        self._rate = RecentRate(self._started, 0)
        self._show()

    def waiting(self, reason: str) -> None:
        if reason != self._waiting:
            self._waiting, self._rate = reason, RecentRate(self._monotonic(), self._bytes)
            self._show()

    def _record(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self._bytes, self._units, self._failed = done_bytes, done_units, failed_attempts
        self._rate.add(self._monotonic(), done_bytes)

    def _show(self) -> None:
        raise NotImplementedError

    def _elapsed(self) -> float:
        return max(self._monotonic() - self._started, 0.0)

    def _share(self) -> float:
        """Between 0 and 1, by bytes where they are known. At most 1, as an estimated total may be too low."""
        total, done = (self._total_bytes, self._bytes) if self._total_bytes else (self._total_units, self._units)
        return min(done / total, 1.0) if total else 1.0

    def _progress_text(self, *, ended: bool = False) -> str:
        say = self._say
        parts = [f"{self._units}/{say.plural(self._total_units, 'unit')}"]
        if self._total_bytes:
            counted = COUNTED_BYTES.get(self._label, "")
            amount = say("{done} of {total}", done=size(self._bytes), total=size(self._total_bytes))
            parts.append(f"{amount} {counted}".rstrip())
        rate = self._mean_rate() if ended else self._rate.bytes_per_s
        if rate is not None and self._bytes and self._total_bytes:
            parts.append(f"{size(rate)}/s")
        if not ended and (left_s := self._left_s()) is not None:
            parts.append(say("ETA {time}", time=duration(left_s)))
        if self._failed:
            parts.append(say("{attempts} failed", attempts=say.plural(self._failed, "attempt")))
        if self._waiting and not ended:
            parts.append(self._waiting)
        return ", ".join(parts)

    def _mean_rate(self) -> float | None:
        return self._bytes / self._elapsed() if self._elapsed() >= _LEAST_RATE_S else None

    def _left_s(self) -> float | None:
        """Until the end; None before that can be known: at the start, and while more workers are on their way."""
        share = self._share()
        if self._waiting or not _LEAST_SHARE <= share < 1.0:
            return None
        if not self._total_bytes:
            return self._elapsed() * (1 - share) / share if self._elapsed() >= _LEAST_ETA_S else None
        if self._rate.span_s < _LEAST_ETA_S or not self._rate.bytes_per_s or self._stalled(self._rate.bytes_per_s):
            return None
        return (self._total_bytes - self._bytes) / self._rate.bytes_per_s

    def _stalled(self, recent: float) -> bool:
        """Much slower than before, as while kernels compile: an ETA of hours would be wrong."""
        return recent < _STALLED * self._bytes / self._elapsed()

    def _summary(self) -> str:
        say = self._say
        return (
            f"{self._name()}: {self._progress_text(ended=True)}, {say('took {time}', time=duration(self._elapsed()))}"
        )

    def _name(self) -> str:
        return self._say.sentence(self._label)


class RecentRate:
    """Bytes per second over the last ten seconds: an average since the start would hide a stall, or a faster engine."""

    def __init__(self, now_s: float, done_bytes: int) -> None:
        self._seen = deque([(now_s, done_bytes)])

    def add(self, now_s: float, done_bytes: int) -> None:
        if done_bytes < self._seen[-1][1]:  # an attempt is repeated
            self._seen.clear()
        if len(self._seen) > 1 and now_s - self._seen[-2][0] < REDRAW_S:
            self._seen.pop()
        self._seen.append((now_s, done_bytes))
        while len(self._seen) > 1 and self._seen[1][0] <= now_s - _RECENT_S:
            self._seen.popleft()

    @property
    def span_s(self) -> float:
        return self._seen[-1][0] - self._seen[0][0]

    @property
    def bytes_per_s(self) -> float | None:
        """None before it is known."""
        done = self._seen[-1][1] - self._seen[0][1]
        return done / self.span_s if self.span_s >= _LEAST_RATE_S else None


class ProgressBar(_Counts):
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
        words = self._progress_text().split(", ")
        line = self._line(_BAR_WIDTH, words)
        if not self._fits(line):
            line = self._line(_SHORT_BAR_WIDTH, words)
        while words and not self._fits(line):
            words.pop(0)  # the last part is the ETA, which matters most
            line = self._line(_SHORT_BAR_WIDTH, words)
        self._console.live(line)

    def _line(self, width: int, words: list[str]) -> str:
        filled = int(self._share() * width)
        return f"{self._name()} {'█' * filled}{'░' * (width - filled)} {self._share():4.0%}  {', '.join(words)}"

    def _fits(self, line: str) -> bool:
        look = self._console.err_look
        return look.width is None or cell_width(look.text(line)) < look.width


class ProgressLines(_Counts):
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
        self._console.note(f"{self._name()}: {self._share():.0%}, {self._progress_text()}")
