"""Conformance checks of reads."""

from datetime import timedelta

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.store.conformance.trial import Trial, raises

_DRIFT = timedelta(minutes=3)
_UNSAFE = ("../up", "/absolute", "a/../b", "a//b", "a/", "", ".", "a b", "ü", "a\\b", "a\nb", "%2e%2e/up")
# Around '/' the order of whole names and that of directories differ: '-' and '.' sort before it.
_TRICKY = ("a-b", "a.b", "a/b", "a/c", "a0", "b-/x", "b/c-d", "b/c/d", "b/c/e-f", "b/c0")


def missing_is_missing(trial: Trial) -> str | None:
    store, name = trial.store, trial.name("nobody")
    return (
        raises(ObjectMissing, lambda: store.get(name, 10))
        or raises(ObjectMissing, lambda: store.get_with_info(name, 10))
        or raises(ObjectMissing, lambda: store.head(name))
        or raises(ObjectMissing, lambda: store.get_range(name, 0, 1))
        or ("an empty place is listed with objects in it" if trial.listed() else None)
    )


def limit_is_kept(trial: Trial) -> str | None:
    name = trial.name("ten")
    trial.store.put_new(name, b"0123456789")
    if trial.store.get(name, 10) != b"0123456789":
        return "an object as large as the limit was not read"
    return raises(Damaged, lambda: trial.store.get(name, 9))


def ranges(trial: Trial) -> str | None:
    store, name = trial.store, trial.name("ten")
    store.put_new(name, b"0123456789")
    for start, length in ((0, 3), (3, 4), (9, 1), (4, 0), (0, 9)):
        if store.get_range(name, start, length) != b"0123456789"[start : start + length]:
            return f"bytes [{start}, {start + length}) came back wrong"
    return raises(Damaged, lambda: store.get_range(name, 5, 6)) or raises(Damaged, lambda: store.get_range(name, 11, 1))


def list_in_order(trial: Trial) -> str | None:
    for name in reversed(_TRICKY):
        trial.store.put_new(trial.name(name), b"x")
    if trial.listed() != sorted(_TRICKY):
        return f"the listing was {trial.listed()}"
    return None if trial.listed("a/") == ["a/b", "a/c"] else f"below a/ it listed {trial.listed('a/')}"


def list_after(trial: Trial) -> str | None:
    names = sorted(_TRICKY)
    for name in names:
        trial.store.put_new(trial.name(name), b"x")
    for after in [*names, "a", "a-", "b/c", "b/c-", "zzz"]:
        expected = [name for name in names if name > after]
        if trial.listed(after=after) != expected:
            return f"after {after} it listed {trial.listed(after=after)} instead of {expected}"
    return None


def list_pages(trial: Trial) -> str | None:
    names = [f"{number:08d}.json" for number in range(trial.scale.keys)]
    for name in names:
        trial.store.put_new(trial.name(name), b"")
    if trial.listed() != names:
        return f"{len(names)} objects were written, {len(trial.listed())} were listed"
    middle = len(names) // 2
    if trial.listed(after=names[middle]) != names[middle + 1 :]:
        return "a listing from the middle was not the second half"
    return None


def unsafe_names_refused(trial: Trial) -> str | None:
    for name in _UNSAFE:
        for call in (
            lambda name=name: trial.store.put_new(name, b""),
            lambda name=name: trial.store.get(name, 1),
            lambda name=name: trial.store.open_new(name),
            lambda name=name: trial.store.delete(name),
            lambda name=name: list(trial.store.list(f"{name}x")),
        ):
            problem = raises(UnsafeName, call)
            if problem:
                return f"the name {name!r} {problem}"
    return None


def clock_drift(trial: Trial) -> str | None:
    name = trial.name("now")
    before = trial.clock()
    trial.store.put_new(name, b"")
    modified = trial.store.head(name).modified
    drift = max(before - modified, modified - trial.clock())
    return None if drift <= _DRIFT else f"the store's clock is {drift.total_seconds():.0f} s from this machine's"
