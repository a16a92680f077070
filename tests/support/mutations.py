"""Changes the source of one shipped function for a test, everywhere it is used."""

import inspect
import sys
import textwrap
from types import FunctionType, ModuleType

import pytest


def mutate(monkeypatch: pytest.MonkeyPatch, owner: ModuleType | type, name: str, old: str, new: str) -> None:
    """Replace text in a function's source. It must be there exactly once, or the mutant is no longer one."""
    original = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(original))
    assert source.count(old) == 1, f"{name} has {source.count(old)} times: {old}"
    module = sys.modules[original.__module__]
    space = dict(vars(module))
    exec(compile(source.replace(old, new), f"<mutant of {name}>", "exec"), space)  # noqa: S102 - our own source
    monkeypatch.setattr(owner, name, _bound_to(space[name], module))
    if isinstance(owner, ModuleType):
        for other in [found for key, found in sys.modules.items() if key.startswith(("logkeep.", "tests."))]:
            if vars(other).get(name) is original:
                monkeypatch.setattr(other, name, getattr(owner, name))


def _bound_to(function: object, module: ModuleType) -> object:
    """The same code with the module's own globals, so that later patches reach it."""
    assert isinstance(function, FunctionType)
    made = FunctionType(function.__code__, vars(module), function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
