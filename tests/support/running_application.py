"""An application with a repository, as tests of its backups need it: requests, creates, and how they end."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from logkeep.application import Application, Command, Context
from logkeep.checkpoint.archive.copies import copy_request, stored_copies
from logkeep.checkpoint.archive.running_application import ApplicationPort
from logkeep.checkpoint.archive.settle import Settlement, settle
from logkeep.checkpoint.partition_copy import CopyRequest, OnFailover, PartitionCopy, options_of
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.checkpoint.steps import run
from logkeep.model.time import random_token, rfc3339, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.journal import BackupRequest, put_request
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from tests.support.processes import wait_for


def bank(name: str = "bank") -> Application:
    """Moves money between two partitions: the sum of all accounts and of what is under way stays the same."""
    made = Application(name, partitions=2)

    @made.on("move")
    def move(command: Command, state: Any, context: Context) -> None:
        state[command.key] = state.get(command.key, 0) - command.value["amount"]
        context.send("add", key=command.value["to"], value=command.value["amount"])

    @made.on("add")
    def add(command: Command, state: Any, context: Context) -> None:
        state[command.key] = state.get(command.key, 0) + command.value
        context.reply(state[command.key])

    return made


def new_repository(path: Path) -> Store:
    store = LocalStore(path)
    store.create()
    create_repository(store, StoreFacts(put_new=True, replace=True, durable=True), utc_now(), random_token)
    return store


def ask(
    place: SourceRef,
    port: ApplicationPort,
    backup_id: int,
    *,
    seconds: float = 60,
    on_failover: OnFailover = "fail",
    base: int | None = None,
) -> CheckpointDocument:
    """Store the request of a backup; the create that a coordinator would send then."""
    facts, now, nonce = port.facts(), utc_now(), random_token()
    identity = {"application_id": facts.application, "partitions": str(facts.partitions)}
    ensure_source(place, "application", identity, now)
    deadline = now + timedelta(seconds=seconds)
    wanted = CopyRequest(
        id=backup_id,
        application=facts.application,
        name=facts.name,
        history=facts.history,
        partitions=facts.partitions,
        nonce=nonce,
        deadline=deadline,
        on_failover=on_failover,
        base=base,
    )
    request = BackupRequest(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        owner=this_process(random_token()),
        started=rfc3339(now),
        base=base,
        fence=read_chain(place).generation,
        options=options_of(wanted, rfc3339(deadline)),
    )
    put_request(place, request)
    return CheckpointDocument(
        repository=place.repository,
        application=facts.application,
        history=facts.history,
        id=backup_id,
        nonce=nonce,
    )


def take(place: SourceRef, port: ApplicationPort, backup_id: int, **how: Any) -> Settlement:
    """A whole backup, from the request to its end."""
    create = ask(place, port, backup_id, **how)
    for partition in range(port.facts().partitions):
        port.create(partition, create)
    return ended(place, backup_id)


def ended(place: SourceRef, backup_id: int) -> Settlement:
    """Wait until a backup is decided."""
    found: list[Settlement] = []

    def is_decided() -> bool:
        found[:] = [run(settle(place, backup_id, utc_now, random_token), lambda _: False)]
        return found[0].state != "ongoing"

    wait_for(is_decided, f"the end of backup {backup_id}")
    return found[0]


def copies(place: SourceRef, backup_id: int) -> list[PartitionCopy]:
    request = copy_request(place, backup_id)
    assert request is not None
    return sorted((one.copy for one in stored_copies(place, request)), key=lambda one: (one.partition, one.term))
