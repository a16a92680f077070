"""Cuts of two partitions by the numbers of their requirements: reordered messages, the counter-example, a restart."""

from logkeep.checkpoint import records
from logkeep.checkpoint.machine_state import apply
from logkeep.checkpoint.records import Kind, Record, SentCommand
from tests.support.machine_runs import Outcome, Partition, create, key_of, start

TO_1 = SentCommand("correlate", key_of(1), b"\xc0")


def sending(command: Record) -> Outcome:
    return (), (TO_1,) if records.source_of(command) is None else (), None


def pair() -> tuple[Partition, Partition]:
    return Partition(start(0), sending), Partition(start(1), sending)


def command(partition: Partition) -> Record:
    """Process one client's command; the message that it sends."""
    before = len(partition.sent())
    partition.receive(records.command("publish", key_of(0), b"\xc0"))
    partition.process()
    return partition.sent()[before][1]


def cut(partition: Partition) -> list[str]:
    return partition.kinds()[: partition.backups()[0].position + 1]


def test_r35_an_event_occurs_when_it_is_written() -> None:
    """A result that was computed and not logged has changed nothing: another leader computes it again."""
    sender, _ = pair()
    sender.receive(records.command("publish", key_of(0), b"\xc0"))
    assert sender.replayed(start(0)).outbox == {}
    sender.process()
    assert sender.replayed(start(0)) == sender.state
    assert list(sender.state.outbox[1]) == [(0, 0)]


def test_r36_messages_around_the_cut_that_arrive_swapped_are_both_outside() -> None:
    sender, receiver = pair()
    first = command(sender)
    sender.receive(create(4))
    sender.process()
    second = command(sender)
    receiver.receive(second)
    receiver.process()
    receiver.receive(first)
    receiver.process()
    assert cut(sender) == ["command", "event", "create"]
    assert cut(receiver) == ["create"]


def test_r37_a_message_of_the_cut_that_did_not_arrive_is_sent_again() -> None:
    sender, receiver = pair()
    command(sender)
    receiver.receive(command(sender))
    receiver.process()
    for partition in (sender, receiver):
        partition.receive(create(4))
        partition.process()
    state = sender.replayed(start(0), sender.backups()[0].position + 1)
    assert list(state.outbox[1]) == [(0, 0), (2, 0)], "both: the acknowledgement of the second is outside"
    assert cut(receiver) == ["command", "event", "create"]


def test_r38_no_cut_has_the_effect_without_its_cause() -> None:
    """The sender is cut before version 2, the receiver gets version 2 before any create: it cuts itself first."""
    sender, receiver = pair()
    receiver.receive(command(sender))
    receiver.process()
    sender.receive(create(4))
    sender.process()
    receiver.receive(command(sender))
    receiver.process()
    assert cut(receiver) == ["command", "event", "create"]
    assert receiver.kinds()[2:] == ["create", "command", "created", "event"]


def test_r61_a_restored_log_ends_with_create_which_sets_the_id_when_processed() -> None:
    original = Partition(start(0))
    original.receive(create(4))
    original.process()
    restored = Partition(start(0, history=2), log=original.log[: original.backups()[0].position + 1])
    assert restored.log[-1].kind == Kind.CREATE
    assert apply(restored.state, restored.log[-1]).state == restored.state
    restored.process()
    assert (restored.state.checkpoint_id, restored.state.checkpoint_position) == (4, 0)
