"""A user's application in the simulator: its handlers and invariants, around the simulated partitions.

The number of partitions is that of each schedule. A handler that raises rejects its command, as it does when it runs.
"""

import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from logkeep.application.application import Application, Invariant
from logkeep.application.context import check_key, encode_value, handled, rejection
from logkeep.checkpoint.records import RESERVED_PREFIX, Record
from logkeep.checkpoint.simulator.workload import HandlerOutcome, Workload
from logkeep.errors import UsageError

_SUBJECT = "--application"


def load_application(text: str) -> Application:
    """From `FILE`, or `FILE:NAME` for one of several. Executes the file, but not its `main`. Raises UsageError."""
    file, _, name = text.partition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}", subject=_SUBJECT, remedy="name the file of the program: shop.py")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        names = runpy.run_path(str(path), run_name="simulated_application")
    except (Exception, SystemExit) as error:
        what = f"{file} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(what, subject=_SUBJECT, remedy=f"run `python {file}` to see where it fails") from error
    finally:
        sys.path.pop(0)
    return _chosen(file, name, {key: value for key, value in names.items() if isinstance(value, Application)})


def _chosen(file: str, name: str, applications: Mapping[str, Application]) -> Application:
    found = [applications[name]] if name in applications else [] if name else list(applications.values())
    if len({id(each) for each in found}) == 1:
        for mistake in found[0].mistakes:
            raise mistake
        return found[0]
    known = ", ".join(f"{file}:{each}" for each in applications)
    what = f"{file} has no Application {name or ''}".rstrip() if not found else f"{file} has several applications"
    remedy = f"name one: {known}" if known else "assign it to a name of the module: shop = Application(…)"
    raise UsageError(what, subject=_SUBJECT, remedy=remedy)


class SimulatedApplication:
    """Counts the commands that its handlers reject."""

    def __init__(self, application: Application) -> None:
        """Raises UsageError if it does not say which commands to send."""
        if len(application.samples) != 1:
            what = "no function says which commands to send" if not application.samples else "several functions do"
            remedy = "decorate one with @shop.sample_command: it gets 0, 1, 2 … and returns name, key and value"
            raise UsageError(what, subject=application.name, remedy=remedy)
        self._application = application
        self.rejected = 0
        self.first_rejection = ""
        self._command(0)

    @property
    def workload(self) -> Workload:
        return Workload(self._call, self._command, self._broken, law="invariant")

    def _call(self, record: Record, state: Mapping[str, bytes], _now_ms: int) -> HandlerOutcome:
        try:
            return handled(self._application.handlers, record, _SimulatedState(state))
        except Exception as error:  # noqa: BLE001 - any error of the user's code rejects its command, and only that
            self.rejected += 1
            self.first_rejection = self.first_rejection or rejection(error)
            return (), (), {"error": rejection(error)}

    def _command(self, number: int) -> tuple[str, str, Any]:
        """Raises UsageError for one that could not be sent."""
        try:
            made: object = self._application.samples[0](number)
        except Exception as error:
            raise UsageError(f"for {number} it raises {rejection(error)}", subject="sample_command") from error
        match made:
            case (str(name), key, value):
                encode_value(value)
                return name, check_key(key), value
        raise UsageError(f"for {number} it returns {made!r}, not a name, a key and a value", subject="sample_command")

    def _broken(self, state: Mapping[str, Any]) -> list[str]:
        own = {key: value for key, value in state.items() if not key.startswith(RESERVED_PREFIX)}
        return [text for check in self._application.invariants for text in _problems(check, own)]


class _SimulatedState:
    """The keys of one partition."""

    def __init__(self, items: Mapping[str, bytes]) -> None:
        self._items = items

    def get(self, key: str) -> bytes | None:
        return self._items.get(key)

    def each_key(self) -> Iterator[str]:
        return (key for key in self._items if not key.startswith(RESERVED_PREFIX))


def _problems(check: Invariant, state: Mapping[str, Any]) -> list[str]:
    """Each check gets a copy: what it changes is not seen by the next one."""
    name = getattr(check, "__name__", "invariant")
    try:
        said = check(msgspec.msgpack.decode(msgspec.msgpack.encode(state)))
    except Exception as error:  # noqa: BLE001 - an invariant that cannot be evaluated does not hold
        text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        return [f"{name}: {text or 'the assertion is false'}"]
    if said is None or said is True:
        return []
    if said is False:
        return [f"{name}: it is false"]
    return [f"{name}: {text}" for text in ([said] if isinstance(said, str) or not isinstance(said, Iterable) else said)]
