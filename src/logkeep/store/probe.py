"""`store probe`: what a store can do, found out by trying, in plain words.

Runs the conformance checks below a random prefix and looks at what surrounds the store: whether the transport is
encrypted, whether unfinished uploads are swept. Says whether commits and leases would be safe, why, and what to do.
"""

from enum import StrEnum

import msgspec

from logkeep.errors import LogkeepError, StoreError
from logkeep.model.time import Clock, TokenSource
from logkeep.store.address import Address, StoreKind, parse_address
from logkeep.store.base import Store
from logkeep.store.conformance import CheckOutcome, Stake, run_checks
from logkeep.store.lifecycle import Rule, abort_rule, rule_remedy
from logkeep.store.trial import QUICK, Scale

_STAKES = {
    Stake.COMMITS: "use another store, or a newer release of this one: backups could be lost here",
    Stake.LEASES: "make sure that only one run at a time writes to this repository",
    Stake.CLEANING: "this identity cannot free space; prune with one that may delete",
}


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"


class ProbeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was tried or looked at."""

    slug: str
    title: str
    result: Result
    what: str = ""
    remedy: str = ""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; `init` stores it and refuses a store whose commits are not safe."""

    url: str
    checks: tuple[ProbeCheck, ...]
    commits_safe: bool
    lease_safe: bool
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]


def probe(store: Store, clock: Clock, token: TokenSource, scale: Scale = QUICK) -> ProbeReport:
    """Try everything out. Raises only when the store cannot be reached, entered or written to at all."""
    prefix = f"probe-{token()}/"
    _require_writable(store, prefix)
    outcomes = run_checks(store, prefix, clock, scale)
    checks = (*map(_tried, outcomes), *_surroundings(store))
    failed = {outcome.check.stake for outcome in outcomes if outcome.problem}
    return ProbeReport(
        url=store.url,
        checks=checks,
        commits_safe=Stake.COMMITS not in failed,
        lease_safe=not failed & {Stake.COMMITS, Stake.LEASES},
        reasons=tuple(f"{c.title}: no, {c.what}" for c in checks if c.result is Result.FAILED),
        remedies=tuple(dict.fromkeys(c.remedy for c in checks if c.remedy)),
    )


def _require_writable(store: Store, prefix: str) -> None:
    """A wrong URL or a missing permission is an error of its own, not twenty failed checks."""
    name = f"{prefix}first"
    store.put_new(name, b"logkeep store probe")
    try:
        store.get(name, 100)
    finally:
        _forget(store, name)


def _forget(store: Store, name: str) -> None:
    try:
        store.delete(name)
    except StoreError:
        return  # the check of `delete` reports it


def _tried(outcome: CheckOutcome) -> ProbeCheck:
    check, problem = outcome.check, outcome.problem
    if problem is None:
        return ProbeCheck(slug=check.slug, title=check.title, result=Result.PASSED)
    result = Result.WARNING if check.stake is Stake.CLEANING else Result.FAILED
    return ProbeCheck(slug=check.slug, title=check.title, result=result, what=problem, remedy=_STAKES[check.stake])


def _surroundings(store: Store) -> list[ProbeCheck]:
    try:
        address = parse_address(store.url)
    except LogkeepError:
        return []  # a store in memory has no surroundings
    if address.kind is StoreKind.LOCAL:
        return []
    return [_transport(address), *_sweeping(address)]


def _transport(address: Address) -> ProbeCheck:
    title = "the way to the store is encrypted"
    if address.encrypted_transport:
        return ProbeCheck(slug="transport", title=title, result=Result.PASSED)
    what = "the endpoint is plain http: everyone on the way can read and change what is sent"
    remedy = "use https, or keep this endpoint on the same machine or a private network"
    return ProbeCheck(slug="transport", title=title, result=Result.WARNING, what=what, remedy=remedy)


def _sweeping(address: Address) -> list[ProbeCheck]:
    title = "parts of uploads that were never finished are removed"
    if address.kind is StoreKind.AZURE:
        return [
            ProbeCheck(slug="unfinished-uploads", title=title, result=Result.PASSED, what="Azure does so by itself")
        ]
    rule, why = abort_rule(address) if address.kind is StoreKind.S3 else (Rule.UNKNOWN, "logkeep cannot ask this store")
    if rule is Rule.PRESENT:
        return [ProbeCheck(slug="unfinished-uploads", title=title, result=Result.PASSED)]
    what = "the bucket has no such rule" if rule is Rule.ABSENT else f"not known: {why}"
    remedy = rule_remedy(address)
    return [ProbeCheck(slug="unfinished-uploads", title=title, result=Result.WARNING, what=what, remedy=remedy)]
