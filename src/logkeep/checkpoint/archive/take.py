"""The coordinator: stores a request, sends creates until every partition has answered, follows the copies to the end.

It keeps no state. What it knows is in the repository, so another one can continue at any step. The request is stored
before the first create is sent: if the store is down, nothing was sent and the id is free.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from logkeep.checkpoint.aggregation import MustFail
from logkeep.checkpoint.archive.answers import refused, unanswered, used_elsewhere
from logkeep.checkpoint.archive.copies import copy_request
from logkeep.checkpoint.archive.running_application import ApplicationFacts, ApplicationPort
from logkeep.checkpoint.archive.settle import Settlement, fail, fail_in, settle, settle_in
from logkeep.checkpoint.partition_copy import CopyRequest, OnFailover, options_of
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import (
    BackupFailed,
    BackupRefused,
    BackupTimedOut,
    ClusterError,
    IllegalTransition,
    Locked,
    UsageError,
)
from logkeep.model.ids import BackupId, next_id
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.backups.backup import check_wanted
from logkeep.repository.backups.detached_backup import partition_failure
from logkeep.repository.backups.journal import BackupRequest, open_ids, put_request
from logkeep.repository.backups.source import check_source, ensure_source
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.write_session import Writing, brief_writing

KIND = "application"
_RESEND_S, _POLL_S, _LOCKED_S = 1.0, 0.5, 1.0
_LARGER_ID = "earlier backups are untouched; take another one, with a larger id"
Watch = Callable[[int, int], None]
"""Gets how many partitions have answered, or have a whole copy, and how many there are."""


@dataclass(frozen=True)
class TakeOptions:
    wanted: BackupId | None = None
    wait: bool = True
    supersede: bool = False
    timeout: timedelta = timedelta(minutes=10)
    on_failover: OnFailover = "fail"
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()


@dataclass(frozen=True)
class TakenBackup:
    id: int
    joined: bool
    """Another coordinator had stored the request."""
    state: StateName
    reason: str = ""


def identity(facts: ApplicationFacts) -> dict[str, str]:
    return {"application_id": facts.application, "partitions": str(facts.partitions)}


def take(
    place: SourceRef, port: ApplicationPort, options: TakeOptions, clock: Clock, tokens: TokenSource,
    watch: Watch = lambda _done, _of: None, learn: Callable[[ApplicationFacts], None] = lambda _: None,
) -> Steps[TakenBackup]:  # fmt: skip
    """Take a backup. Without `wait` it ends when every partition has processed its create: the backup is ongoing.
    `learn` gets the facts of the application before anything can fail.

    Raises IllegalTransition if the id was used, Locked if another backup is ongoing, BackupFailed if this one failed.
    """
    _check_time(options.timeout)
    yield "take: facts"
    facts = port.facts()
    learn(facts)
    yield "take: source"
    check_application(place, facts)
    request, joined = yield from _request(place, facts, options, clock, tokens)
    yield from _announce(place, port, request, clock, tokens, watch)
    settled = yield from _follow(place, request, options, clock, tokens, watch)
    if settled.state is StateName.FAILED:
        raise BackupFailed(settled.reason, subject=f"backup {request.id}", remedy=_LARGER_ID)
    return TakenBackup(request.id, joined, settled.state, settled.reason)


def mark(
    place: SourceRef, port: ApplicationPort, wanted: BackupId | None, timeout: timedelta, clock: Clock,
    tokens: TokenSource,
) -> Steps[int]:  # fmt: skip
    """A checkpoint without copies. It can be restored to once a later backup has archived the log around it.

    Raises IllegalTransition if the id was used, Locked if a backup is ongoing, BackupFailed.
    """
    _check_time(timeout)
    yield "mark: facts"
    facts, until = port.facts(), clock() + timeout
    _check_place(place, facts)
    yield "mark: ids"
    for backup_id in open_ids(place, read_chain(place).last_id):
        if (yield from settle(place, backup_id, clock, tokens)).state is StateName.ONGOING:
            raise _ongoing(place, backup_id)
    folded = read_chain(place)
    checkpoint_id = _new_id(facts, wanted, folded.last_id, clock())
    document = _document(place, facts, checkpoint_id, tokens(), marker=True)
    while True:
        answers = yield from _send(port, document, facts.partitions)
        other = used_elsewhere(document.nonce, answers)
        if other is not None:
            raise IllegalTransition(f"partition {other}: the id was used", subject=f"checkpoint {checkpoint_id}")
        problem = refused(checkpoint_id, facts.history, place.repository, answers, marker=True)
        missing = unanswered(facts.partitions, answers)
        if problem is None and missing and clock() >= until:
            problem = MustFail(f"it did not answer within {timeout.total_seconds():g} s", missing[0])
        if problem is not None:
            reason = partition_failure(problem.partition, problem.reason)
            raise BackupFailed(reason, subject=f"checkpoint {checkpoint_id}", remedy=_LARGER_ID)
        if not missing:
            return checkpoint_id
        yield Wait(_RESEND_S)


def _check_time(timeout: timedelta) -> None:
    if timeout <= timedelta():
        raise UsageError("no time is left for the partitions to answer", subject="--timeout", remedy="use 1s or more")


def check_application(place: SourceRef, facts: ApplicationFacts) -> None:
    """Raises UsageError if it archives elsewhere or nowhere, or if the source has backups of something else."""
    _check_place(place, facts)
    check_source(place, KIND, identity(facts))


def _check_place(place: SourceRef, facts: ApplicationFacts) -> None:
    if not (facts.repository or facts.source):
        raise UsageError(
            "it was started without a repository",
            subject=f"application {facts.name}",
            remedy="start it again with --repository URL, or with LOGKEEP_REPO set",
        )
    if facts.source not in {"", place.source}:
        raise UsageError(
            f"it archives to source {facts.source}, not to {place.source}",
            subject=f"application {facts.name}",
            remedy=f"give the name {facts.source}",
        )
    if facts.repository and facts.repository != place.repository:
        raise UsageError(
            f"it archives to repository {facts.repository}, not to {place.repository}",
            subject=f"application {facts.name}",
            remedy="name the repository with which the application was started",
        )


def _ongoing(place: SourceRef, backup_id: int) -> Locked:
    return Locked(
        f"backup {backup_id} is ongoing",
        subject=place.source,
        remedy=f"wait for it (`logkeep app status {backup_id}`), or fail it first with --supersede",
    )


def _request(
    place: SourceRef, facts: ApplicationFacts, options: TakeOptions, clock: Clock, tokens: TokenSource
) -> Steps[tuple[CopyRequest, bool]]:
    """Store the request, or join the same one of another coordinator."""
    until = clock() + options.timeout
    while True:
        yield "take: lease"
        try:
            with brief_writing(place, "take", clock, tokens) as writing:
                yield "take: request"
                ongoing = _decide_open(writing, options)
                if ongoing is None:
                    ensure_source(place, KIND, identity(facts), clock())
                    return _store_request(writing, facts, options), False
        except Locked:
            if clock() >= until:
                raise
            yield Wait(_LOCKED_S)
            continue
        yield "take: join"
        request = copy_request(place, ongoing)
        if options.wanted != ongoing or request is None:
            raise _ongoing(place, ongoing)
        return request, True


def _decide_open(writing: Writing, options: TakeOptions) -> int | None:
    """Settle every earlier request; the id of one that is still ongoing and not superseded."""
    for backup_id in open_ids(writing.place, writing.folded.last_id):
        if settle_in(writing, backup_id).state is not StateName.ONGOING:
            continue
        if not options.supersede or backup_id == options.wanted:
            return backup_id
        fail_in(writing, backup_id, "superseded by a later backup")
    return None


def _store_request(writing: Writing, facts: ApplicationFacts, options: TakeOptions) -> CopyRequest:
    folded, now = writing.folded, writing.clock()
    base = folded.completed[-1].id if folded.completed else None
    asked = CopyRequest(
        id=_new_id(facts, options.wanted, folded.last_id, now),
        application=facts.application,
        name=facts.name,
        history=facts.history,
        partitions=facts.partitions,
        nonce=writing.tokens(),
        deadline=now + options.timeout,
        on_failover=options.on_failover,
        base=base,
        brokers=facts.brokers,
    )
    stored = BackupRequest(
        repository=writing.place.repository,
        source=writing.place.source,
        id=asked.id,
        owner=writing.lease.owner,
        started=rfc3339(now),
        base=base,
        fence=folded.generation,
        group=options.group,
        tags=options.tags,
        options=options_of(asked, rfc3339(asked.deadline)),
    )
    put_request(writing.place, stored)
    return asked


def _new_id(facts: ApplicationFacts, wanted: BackupId | None, last_id: int, now: datetime) -> BackupId:
    """After every backup and every checkpoint without a copy. Raises IllegalTransition."""
    check_wanted(wanted, last_id)
    if wanted is not None and wanted <= facts.latest:
        what = f"id {wanted} is not larger than the latest checkpoint of the application, {facts.latest}"
        raise IllegalTransition(what)
    return wanted or next_id(now, max(last_id, facts.latest))


def _document(
    place: SourceRef, facts: ApplicationFacts | CopyRequest, checkpoint_id: int, nonce: str, *, marker: bool = False
) -> CheckpointDocument:
    return CheckpointDocument(
        repository=place.repository,
        application=facts.application,
        history=facts.history,
        id=checkpoint_id,
        nonce=nonce,
        marker=marker,
    )


def _send(
    port: ApplicationPort, document: CheckpointDocument, partitions: int
) -> Steps[Mapping[int, CheckpointDocument]]:
    """Send a create to every partition that has not answered; the answers after that."""
    known = yield from _answers(port, document.id)
    for partition in unanswered(partitions, known):
        yield f"create {partition}"
        try:
            port.create(partition, document)
        except ClusterError:
            continue  # it is sent again until the deadline
        yield f"created {partition}"
    return (yield from _answers(port, document.id))


def _answers(port: ApplicationPort, checkpoint_id: int) -> Steps[Mapping[int, CheckpointDocument]]:
    yield "answers"
    try:
        return port.answers(checkpoint_id)
    except ClusterError:
        return {}


def _announce(
    place: SourceRef, port: ApplicationPort, request: CopyRequest, clock: Clock, tokens: TokenSource, watch: Watch
) -> Steps[None]:
    """Until every partition has processed its create. Raises BackupFailed."""
    document = _document(place, request, request.id, request.nonce)
    while True:
        answers = yield from _send(port, document, request.partitions)
        missing = unanswered(request.partitions, answers)
        watch(request.partitions - len(missing), request.partitions)
        kind: type[BackupFailed] = BackupRefused
        problem = refused(request.id, request.history, place.repository, answers)
        if problem is None and missing and clock() >= request.deadline:
            kind = BackupTimedOut
            problem = MustFail(f"it did not answer before the deadline, {rfc3339(request.deadline)}", missing[0])
        if problem is not None:
            reason = partition_failure(problem.partition, problem.reason)
            settled = yield from fail(place, request.id, reason, clock, tokens)
            if settled.state is StateName.COMPLETED:
                return  # every partition has stored its copy: only an answer is late
            other = bool(settled.reason) and settled.reason != reason  # another process had failed it
            how = BackupFailed if other else kind
            raise how(settled.reason or reason, subject=f"backup {request.id}", remedy=_LARGER_ID)
        if not missing:
            return
        yield Wait(_RESEND_S)


def _follow(
    place: SourceRef, request: CopyRequest, options: TakeOptions, clock: Clock, tokens: TokenSource, watch: Watch
) -> Steps[Settlement]:
    while True:
        settled = yield from settle(place, request.id, clock, tokens)
        if settled.state is not StateName.ONGOING or not options.wait:
            return settled
        watch(request.partitions - len(settled.missing), request.partitions)
        yield Wait(_POLL_S)
