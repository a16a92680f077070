"""`store probe`: tests what a store can do.

Runs the conformance checks below a random prefix and checks whether the transport is encrypted, whether unfinished
uploads are removed, and whether the bucket keeps versions and locks them. Reports whether commits and leases would be
safe, why, and what to do.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum

import msgspec

from logkeep.errors import LogkeepError, StoreFull
from logkeep.model.time import Clock, TokenSource
from logkeep.store.address import Address, StoreKind, parse_address
from logkeep.store.base import Store
from logkeep.store.buckets.lifecycle import AbortRule, abort_rule, rule_remedy
from logkeep.store.buckets.versions import bucket_protection
from logkeep.store.conformance.checks import CheckOutcome, Stake, Watch, emptied, run_checks
from logkeep.store.conformance.trial import QUICK, Scale

VERSIONS = "versions"
"""Slug of the line about versions and locks."""
AT_ONCE = 8
"""Checks at the same time on a store in a network, where they mostly wait. A disk would only be slower."""
_SPACE_MIB = 32
_STAKES = {
    Stake.COMMITS: "use another store, or a newer release of this one: backups could be lost",
    Stake.LEASES: "make sure that only one run at a time writes to this repository",
    Stake.CLEANING: "these credentials cannot free space; prune with credentials that may delete",
}


class ProbeResult(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"


class ProbeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check and its result."""

    slug: str
    title: str
    result: ProbeResult
    what: str = ""
    remedy: str = ""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report; `init` stores it and refuses a store whose commits are not safe."""

    url: str
    checks: tuple[ProbeCheck, ...]
    commits_safe: bool
    lease_safe: bool
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]


def probe(
    store: Store, clock: Clock, token: TokenSource, scale: Scale = QUICK, watch: Watch = lambda _: None
) -> ProbeReport:
    """Run all checks. Raises only if the store cannot be reached, is full, or cannot be written to at all."""
    prefix, address = f"probe-{token()}/", _network_address(store)
    _require_writable(store, prefix)
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(about_bucket, address)
        outcomes = _run_checks(store, prefix, clock, scale, watch, at_once=AT_ONCE if address else 1)
        checks = (*map(_check_report, outcomes), *asked.result())
    failed = {outcome.check.stake for outcome in outcomes if outcome.problem}
    return ProbeReport(
        url=store.url,
        checks=checks,
        commits_safe=Stake.COMMITS not in failed,
        lease_safe=not failed & {Stake.COMMITS, Stake.LEASES},
        reasons=tuple(f"{c.title}: no, {c.what}" for c in checks if c.result is ProbeResult.FAILED),
        remedies=tuple(dict.fromkeys(c.remedy for c in checks if c.remedy)),
    )


def _require_writable(store: Store, prefix: str) -> None:
    """A wrong URL or a missing permission is an error of its own, not twenty failed checks."""
    with emptied(store, prefix), _explained(store):
        store.put_new(f"{prefix}first", b"logkeep store probe")
        store.get(f"{prefix}first", 100)


def _run_checks(
    store: Store, prefix: str, clock: Clock, scale: Scale, watch: Watch, at_once: int
) -> list[CheckOutcome]:
    with _explained(store):
        return run_checks(store, prefix, clock, scale, at_once=at_once, watch=watch)


@contextmanager
def _explained(store: Store) -> Iterator[None]:
    """A full store is one error about the store, not one about an object of the probe."""
    try:
        yield
    except StoreFull as error:
        what = f"{error.what}; testing what the store can do needs {_SPACE_MIB} MiB"
        raise StoreFull(what, subject=store.url, remedy="free space or raise the quota, then run again") from error


def _check_report(outcome: CheckOutcome) -> ProbeCheck:
    check, problem = outcome.check, outcome.problem
    if problem is None:
        return ProbeCheck(slug=check.slug, title=check.title, result=ProbeResult.PASSED)
    result = ProbeResult.WARNING if check.stake is Stake.CLEANING else ProbeResult.FAILED
    return ProbeCheck(slug=check.slug, title=check.title, result=result, what=problem, remedy=_STAKES[check.stake])


def _network_address(store: Store) -> Address | None:
    """The address of a store in a network; None for a directory, and for a store in memory."""
    try:
        address = parse_address(store.url)
    except LogkeepError:
        return None
    return None if address.kind is StoreKind.LOCAL else address


def about_bucket(address: Address | None) -> list[ProbeCheck]:
    """What the bucket's owner has configured, besides what the store can do."""
    if address is None:
        return []
    return [_check_encryption(address), *_check_unfinished_uploads(address), *_check_versions(address)]


def _check_encryption(address: Address) -> ProbeCheck:
    title = "the connection to the store is encrypted"
    if address.encrypted_transport:
        return ProbeCheck(slug="transport", title=title, result=ProbeResult.PASSED)
    what = "the endpoint is plain http: others on the network can read and change what is sent"
    remedy = "use https, or keep this endpoint on the same host or a private network"
    return ProbeCheck(slug="transport", title=title, result=ProbeResult.WARNING, what=what, remedy=remedy)


def _check_unfinished_uploads(address: Address) -> list[ProbeCheck]:
    title = "parts of unfinished uploads are removed"
    if address.kind is StoreKind.AZURE:
        return [
            ProbeCheck(slug="unfinished-uploads", title=title, result=ProbeResult.PASSED, what="Azure removes them")
        ]
    rule, why = (
        abort_rule(address)
        if address.kind is StoreKind.S3
        else (AbortRule.UNKNOWN, "logkeep cannot read the rules of this store")
    )
    if rule is AbortRule.PRESENT:
        return [ProbeCheck(slug="unfinished-uploads", title=title, result=ProbeResult.PASSED)]
    what = "the bucket has no such rule" if rule is AbortRule.ABSENT else f"not known: {why}"
    remedy = rule_remedy(address)
    return [ProbeCheck(slug="unfinished-uploads", title=title, result=ProbeResult.WARNING, what=what, remedy=remedy)]


def _check_versions(address: Address) -> list[ProbeCheck]:
    """A line for information: a repository is safe with and without versions and locks."""
    if address.kind is not StoreKind.S3:
        return []
    title, what = "versions and locks of the bucket", str(bucket_protection(address))
    return [ProbeCheck(slug=VERSIONS, title=title, result=ProbeResult.PASSED, what=what)]
