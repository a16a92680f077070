"""The terminal recording of the README: `python -m docs.pictures.recording` runs real commands and draws their output.

It starts `logkeep demo --stay`, types the scenes below into a terminal of its own, and writes `recording.svg`. Pauses
are shortened; nothing else is changed. It needs Java and about a minute.
"""

import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from docs.pictures.film import film
from docs.pictures.terminal import Terminal

FILE = Path(__file__).with_name("recording.svg")
COLUMNS, ROWS = 108, 30
_LONGEST_PAUSE_S = 0.8
_KEY_S = 0.035
_THINK_S, _READ_S = 0.6, 1.6
_QUESTION = re.compile(r"type\s+(\S+)\s+to\s+continue\s")


@dataclass(frozen=True)
class SceneCommand:
    """What is said before a command, and the command."""

    remark: str
    typed: str


SCENES = (
    SceneCommand("a real broker with a shop in it: back it up", "logkeep kafka backup --source shop"),
    SceneCommand(
        "the accident: a user deletes the topics",
        """kafka-topics.sh --bootstrap-server "$BROKERS" --delete --topic 'orders|payments'""",
    ),
    SceneCommand("restore, and prove it", "logkeep kafka restore latest"),
    SceneCommand(
        "the group continues at its offset",
        'kafka-console-consumer.sh --bootstrap-server "$BROKERS" --group billing --topic orders --max-messages 3',
    ),
)


class Recorder:
    """Types commands and keeps what is seen, on a clock without long pauses."""

    def __init__(self, shop: Path) -> None:
        self.terminal = Terminal(COLUMNS)
        self._shop = shop
        self._now_s = 0.0

    def play(self, scene: SceneCommand) -> None:
        self._show(f"\x1b[2m# {scene.remark}\x1b[0m\n", _THINK_S)
        self._show("$ ", _THINK_S)
        self._type(scene.typed)
        self._show("\n", _THINK_S)
        for printed, after_s in _run(scene.typed, self._shop):
            self._show(printed, min(after_s, _LONGEST_PAUSE_S))
        self._show("\n", _READ_S)

    def _type(self, keys: str) -> None:
        for place in range(0, len(keys), 2):
            self._show(f"\x1b[1m{keys[place : place + 2]}\x1b[0m", 2 * _KEY_S)

    def _show(self, printed: str, after_s: float) -> None:
        self._now_s = round(self._now_s + after_s, 3)
        self.terminal.write(printed, self._now_s)


def _run(command: str, shop: Path) -> Iterator[tuple[str, float]]:
    """What a command prints in a terminal, piece by piece, with the seconds before each. It must end with 0."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", f'. "{shop}/env"; {command}'],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=_environment(),
    )  # fmt: skip
    os.close(theirs)
    last, printed = time.monotonic(), ""
    with os.fdopen(ours, "r+b", buffering=0) as screen:
        while text := _read(screen.fileno()):
            now = time.monotonic()
            yield text.replace("\r\n", "\n"), now - last
            last, printed = now, printed + text
            if question := _QUESTION.search(printed):
                time.sleep(_LONGEST_PAUSE_S)
                screen.write(f"{question[1]}\n".encode())
                printed = ""
    if process.wait():
        raise SystemExit(f"{command}: ended with {process.returncode}")


def _read(descriptor: int) -> str:
    """What is there, or nothing at the end. A character is never cut in two: more is read until it is whole."""
    data = b""
    while True:
        select.select([descriptor], [], [])
        try:
            data += os.read(descriptor, 65536)
            return data.decode()
        except UnicodeDecodeError:
            continue
        except OSError:  # the other side is closed
            return data.decode(errors="replace")


def _environment() -> dict[str, str]:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": beside, "TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC"}


@contextmanager
def _open_shop(directory: Path) -> Iterator[Path]:
    """The demo that stays; its own output goes to this script's."""
    shop = directory / "shop"
    demo = ["logkeep", "demo", "--stay", "--only", "kafka", "--directory", str(shop)]
    process = subprocess.Popen(demo, env=_environment())
    try:
        while not (shop / "env").exists():
            if process.poll() is not None:
                raise SystemExit("the demo did not start")
            time.sleep(0.2)
        subprocess.run(["bash", "-c", f'. "{shop}/env"; logkeep init'], env=_environment(), check=True)
        yield shop
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="logkeep-recording-") as name, _open_shop(Path(name)) as shop:
        recorder = Recorder(shop)
        for scene in SCENES:
            recorder.play(scene)
    picture = film("logkeep: backup, accident, restore", recorder.terminal.versions, COLUMNS, ROWS)
    FILE.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
