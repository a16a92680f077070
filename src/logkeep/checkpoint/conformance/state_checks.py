"""Checks of every promise of a state backend.

`run_state_checks(make, directory)` runs all of them; `make(directory)` opens or creates a backend in a directory of its
own. A check returns None if the promise was kept, or how it was broken.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from logkeep.checkpoint.state.backend import NOTHING, StateBackend, Write
from logkeep.errors import Damaged

MakeState = Callable[[Path], StateBackend]
MadeT = TypeVar("MadeT")
PromiseCheck = Callable[[MadeT, Path], str | None]


@dataclass(frozen=True)
class PromiseOutcome:
    """`problem` is None if the promise was kept."""

    title: str
    problem: str | None


def run_state_checks(make: MakeState, directory: Path, *, survives: bool = True) -> list[PromiseOutcome]:
    """Run the checks. A backend that promises to survive a restart is opened twice."""
    return run_each({t: check for t, check in _CHECKS.items() if survives or check is not _survives}, make, directory)


def run_each(checks: Mapping[str, PromiseCheck[MadeT]], make: MadeT, directory: Path) -> list[PromiseOutcome]:
    """Run checks, each in a directory of its own."""
    outcomes = []
    for number, (title, check) in enumerate(checks.items()):
        own = directory / str(number)
        own.mkdir(parents=True)
        outcomes.append(PromiseOutcome(title, _problem(check, make, own)))
    return outcomes


def _problem(check: PromiseCheck[MadeT], make: MadeT, directory: Path) -> str | None:
    try:
        return check(make, directory)
    except Exception as error:  # noqa: BLE001 - any error of a user's backend or log is an answer of this check
        return f"{type(error).__name__}: {error}"


def _begins_empty(make: MakeState, directory: Path) -> str | None:
    state = make(directory)
    found = state.position, state.get("a"), state.get_system("a"), list(state.items()), list(state.system_items())
    state.close()
    state.close()
    return None if found == (NOTHING, None, None, [], []) else f"a new backend has {found}"


def _applies(make: MakeState, directory: Path) -> str | None:
    state = make(directory)
    state.apply(3, [Write("a", b"1"), Write("b", b"2"), Write("ä", b"\0\xff"), Write("empty", b"")], [Write("a", b"s")])
    state.apply(9, [Write("a", None), Write("missing", None), Write("b", b"3"), Write("b", b"4")], [])
    found = state.position, list(state.items()), list(state.system_items())
    single = [state.get(key) for key in ("a", "b", "ä", "empty")]
    state.close()
    if found != (9, [("b", b"4"), ("empty", b""), ("ä", b"\0\xff")], [("a", b"s")]):
        return f"after two transactions it has {found}"
    return None if single == [None, b"4", b"\0\xff", b""] else f"its keys have {single}"


def _position_alone(make: MakeState, directory: Path) -> str | None:
    state = make(directory)
    state.apply(5, [], [])
    state.apply(5, [Write("a", b"1")], [])
    try:
        state.apply(4, [Write("a", b"2")], [])
    except ValueError:
        found = state.position, state.get("a")
        return None if found == (5, b"1") else f"a refused transaction left {found}"
    finally:
        state.close()
    return "a smaller position was accepted"


def _survives(make: MakeState, directory: Path) -> str | None:
    state = make(directory)
    state.apply(7, [Write("a", b"1")], [Write("s", b"2")])
    state.close()
    again = make(directory)
    found = again.position, again.get("a"), again.get_system("s")
    again.close()
    return None if found == (7, b"1", b"2") else f"opened again it has {found}"


def _snapshot_is_exact(make: MakeState, directory: Path) -> str | None:
    """A snapshot while another thread writes: every key has the same number, and it is the position."""
    state = make(_below(directory, "source"))
    state.apply(0, [Write(str(key), b"0") for key in range(50)], [])
    stop = threading.Event()
    writer = threading.Thread(target=_write_on, args=(state, stop))
    writer.start()
    try:
        infos = [state.snapshot(directory / f"copy-{number}") for number in range(3)]
    finally:
        stop.set()
        writer.join()
        state.close()
    for number, info in enumerate(infos):
        problem = _copy_problem(
            make, _below(directory, f"loaded-{number}"), directory / f"copy-{number}", info.position
        )
        if problem:
            return problem
    return None


def _write_on(state: StateBackend, stop: threading.Event) -> None:
    position = 0
    while not stop.is_set():
        position += 1
        state.apply(position, [Write(str(key), str(position).encode()) for key in range(50)], [])


def _copy_problem(make: MakeState, directory: Path, path: Path, position: int) -> str | None:
    before = path.read_bytes()
    copy = make(directory)
    copy.apply(0, [Write("old", b"1")], [Write("old", b"1")])
    copy.load(path)
    values, old, found = {value for _, value in copy.items()}, copy.get_system("old"), copy.position
    copy.close()
    if values != {str(position).encode()} or found != position or old is not None:
        return f"a snapshot at {position} has position {found} and the values {sorted(values)[:3]}"
    return None if path.read_bytes() == before else "loading changed the snapshot"


def _damage_is_refused(make: MakeState, directory: Path) -> str | None:
    state = make(_below(directory, "own"))
    state.apply(1, [Write("a", b"1")], [])
    damaged = directory / "damaged"
    damaged.write_bytes(b"\xc1" + b"no snapshot" * 50)
    try:
        state.load(damaged)
    except Damaged:
        found = state.position, state.get("a")
        return None if found == (1, b"1") else f"a refused snapshot left {found}"
    finally:
        state.close()
    return "a damaged snapshot was loaded"


def _below(directory: Path, name: str) -> Path:
    own = directory / name
    own.mkdir()
    return own


_CHECKS: dict[str, PromiseCheck[MakeState]] = {
    "a new backend is empty": _begins_empty,
    "a transaction is applied in order, and as a whole": _applies,
    "positions never shrink, and a refused transaction changes nothing": _position_alone,
    "what was applied is there after a restart": _survives,
    "a snapshot contains one moment while another thread writes": _snapshot_is_exact,
    "a damaged snapshot is refused, and changes nothing": _damage_is_refused,
}
