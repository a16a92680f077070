"""The machine by the numbers of its requirements: ids, create, replay, stamps, forced creates."""

import msgspec
import pytest

from logkeep.checkpoint import machine, records
from logkeep.checkpoint.machine import Reply, TakeBackup
from logkeep.checkpoint.machine_state import apply
from logkeep.checkpoint.records import CheckpointDocument, Kind, Record, SentCommand, Stamp, document_of, stamp_of
from tests.support.machine_runs import APPLICATION, Outcome, Partition, create, key_of, nothing, start

FORWARDED = SentCommand("next", key_of(1), b"\xc0")


def forwarding(_: Record) -> Outcome:
    return (), (FORWARDED,), None


def message(
    checkpoint_id: int, position: int = 5, *, application: bytes = APPLICATION, history: int = 1, low: int = 0
) -> Record:
    """What partition 1 sends to partition 0."""
    source = records.MessageSource("shop.log", 1, position, 0)
    sent = SentCommand("work", key_of(0), b"\xc0")
    return records.message(sent, Stamp(application, history, checkpoint_id), source, low)


def test_r2_an_id_that_is_not_larger_creates_nothing() -> None:
    partition = Partition(start())
    for backup_id in (5, 4, 5, 1):
        partition.receive(create(backup_id))
        partition.process()
    assert [found.id for found in partition.backups()] == [5]
    assert partition.kinds() == ["create", "created", "create", "ignored", "create", "ignored", "create", "ignored"]


def test_r3_the_same_id_twice_gives_one_backup_also_if_both_wait() -> None:
    partition = Partition(start())
    partition.receive(create(7, nonce="00000000000000aa"))
    partition.receive(create(7, nonce="00000000000000bb"))
    partition.process()
    assert partition.backups() == [TakeBackup(7, 0, "00000000000000aa", "repo")]


def test_r21_create_takes_a_backup_at_its_own_position_and_writes_created() -> None:
    partition = Partition(start())
    partition.receive(records.command("order", "a", b"\xc0"))
    partition.process()
    partition.receive(create(3))
    partition.process()
    assert partition.kinds() == ["command", "event", "create", "created"]
    assert partition.backups() == [TakeBackup(3, 2, "00000000000000aa", "repo")]
    assert (partition.state.checkpoint_id, partition.state.checkpoint_position) == (3, 2)
    assert document_of(partition.log[3]).source_position == 2


def test_r22_an_older_create_changes_nothing_and_is_ignored_with_the_latest_id() -> None:
    partition = Partition(start())
    partition.receive(create(3))
    partition.process()
    partition.receive(create(2))
    partition.process()
    assert (partition.state.checkpoint_id, partition.state.checkpoint_position) == (3, 0)
    ignored = document_of(partition.log[3])
    assert (partition.log[3].kind, ignored.id, ignored.latest, ignored.source_position) == (Kind.IGNORED, 2, 3, 2)
    assert len(partition.backups()) == 1


def test_r23_a_coordinator_is_answered_in_both_cases_a_forced_create_is_not() -> None:
    partition = Partition(start())
    partition.receive(message(4))
    partition.receive(create(4, nonce="00000000000000cc"))
    partition.receive(create(9, nonce="00000000000000dd"))
    partition.process()
    answers = [(found.to, found.value) for found in partition.replies()]
    assert [(to, value.id, value.latest) for to, value in answers if isinstance(value, CheckpointDocument)] == [
        ("00000000000000cc", 4, 4),
        ("00000000000000dd", 9, 9),
    ]
    assert len(answers) == 2


def test_r24_commands_behind_a_create_are_processed_at_once() -> None:
    partition = Partition(start())
    partition.receive(create(1))
    partition.receive(records.command("order", "a", b"\xc0", request="r1"))
    partition.process()
    assert partition.kinds() == ["create", "command", "created", "event"]
    assert [found.to for found in partition.replies()] == ["00000000000000aa", "r1"]


def test_r25_replay_takes_the_source_position_of_created() -> None:
    partition = Partition(start())
    partition.receive(create(6))
    partition.receive(records.command("order", "a", b"\xc0"))
    partition.process()
    assert partition.log[2].kind == Kind.CREATED
    state = partition.replayed(start())
    assert (state.checkpoint_id, state.checkpoint_position, state.written) == (6, 0, 3)


def test_r26_replay_changes_state_alone_and_ignored_changes_nothing() -> None:
    partition = Partition(start())
    for backup_id in (6, 5):
        partition.receive(create(backup_id))
        partition.process()
    before, after = partition.replayed(start(), 3), partition.replayed(start())
    assert (before.checkpoint_id, after.checkpoint_id, after.checkpoint_position) == (6, 6, 0)
    applied = apply(start(), partition.log[1])
    assert set(applied.__struct_fields__) == {"state", "writes", "system"}, "nothing that could instruct"


def test_r27_a_message_carries_the_id_of_its_sending_and_a_resend_that_of_today() -> None:
    partition = Partition(start(), forwarding)
    partition.receive(create(2))
    partition.receive(records.command("order", key_of(0), b"\xc0"))
    partition.process()
    [(receiver, first)] = partition.sent()
    partition.receive(create(8))
    partition.process()
    [(again_to, again)] = machine.resend(partition.state, below=100, most=10).messages
    assert (receiver, again_to) == (1, 1)
    assert [stamp_of(found) for found in (first, again)] == [Stamp(APPLICATION, 1, 2), Stamp(APPLICATION, 1, 8)]
    assert records.source_of(first) == records.source_of(again) == records.MessageSource("shop.log", 0, 1, 0)


def test_a_receiver_that_does_not_answer_takes_no_turn_of_the_others_when_messages_are_sent_again() -> None:
    to = {receiver: SentCommand("next", key_of(receiver, 3), b"\xc0") for receiver in (1, 2)}
    silent = {(position, 0): to[2] for position in range(40)}
    state = msgspec.structs.replace(start(partitions=3), outbox={2: silent, 1: {(50, 0): to[1], (60, 0): to[1]}})
    sent = machine.resend(state, below=60, most=10).messages
    assert [receiver for receiver, _ in sent].count(1) == 1  # the one at 60 is not due
    positions = [source.position for _, each in sent if (source := records.source_of(each))]
    assert sorted(positions) == [*range(9), 50]


def test_r28_a_create_is_logged_before_a_message_with_a_larger_id() -> None:
    partition = Partition(start())
    partition.receive(message(4))
    partition.process()
    assert partition.kinds() == ["create", "command", "created", "event"]
    assert records.in_batches(partition.log[:2]) == [[partition.log[0]], [partition.log[1]]]
    assert partition.backups() == [TakeBackup(4, 0, "", "")]


def test_r28_an_acknowledgement_forces_too() -> None:
    partition = Partition(start())
    source = records.MessageSource("shop.log", 1, 5, records.ACK_INDEX)
    partition.receive(records.acknowledgement([(0, 0)], Stamp(APPLICATION, 1, 4), source))
    assert partition.kinds() == ["create", "ack"]


@pytest.mark.parametrize("remote", [3, 2, 0])
def test_r29_an_equal_or_smaller_id_adds_nothing(remote: int) -> None:
    partition = Partition(start())
    partition.receive(create(3))
    partition.process()
    partition.receive(message(remote))
    assert partition.kinds() == ["create", "created", "command"]


def test_r30_a_message_without_an_id_is_processed_and_forces_nothing() -> None:
    partition = Partition(start())
    partition.receive(records.command("order", "a", b"\xc0"))
    partition.process()
    assert (partition.kinds(), partition.counted) == (["command", "event"], [])


def without(record: Record, name: str) -> Record:
    return msgspec.structs.replace(record, headers=tuple(found for found in record.headers if found[0] != name))


def test_r62_a_message_of_an_older_release_without_stamp_is_processed_once() -> None:
    partition = Partition(start())
    for _ in range(2):
        partition.receive(without(message(9), records.STAMP))
        partition.process()
    assert partition.kinds() == ["command", "event"]


def test_r62_an_unknown_version_of_the_stamp_forces_nothing_and_is_counted() -> None:
    newer = without(message(9), records.STAMP)
    newer = msgspec.structs.replace(newer, headers=(*newer.headers, (records.STAMP, b"\x02" + bytes(28))))
    partition = Partition(start())
    partition.receive(newer)
    partition.process()
    assert (partition.kinds(), partition.counted) == (["command", "event"], ["unreadable"])


def test_r31_create_of_the_coordinator_before_the_forced_one() -> None:
    sender, receiver = case(1, 12), case(0, 12)
    sender.receive(create(50))
    sender.receive(records.command("deploy", "d", b"\xc0"))
    sender.process()
    assert sender.kinds()[12:] == ["create", "command", "created", "event"]
    receiver.receive(create(50))
    receiver.receive(message(50, 13))
    receiver.process()
    assert receiver.kinds()[12:] == ["create", "create", "command", "created", "ignored", "event"]
    assert [found.state.checkpoint_position for found in (sender, receiver)] == [12, 12]
    assert [found.position for found in sender.backups() + receiver.backups()] == [12, 12]


def test_r32_the_forced_create_before_the_coordinators() -> None:
    receiver = case(0, 12)
    receiver.receive(message(50, 13))
    receiver.receive(create(50, nonce="00000000000000ee"))
    receiver.process()
    assert receiver.kinds()[12:] == ["create", "command", "create", "created", "event", "ignored"]
    assert (receiver.state.checkpoint_position, [found.position for found in receiver.backups()]) == (12, [12])
    assert [found.to for found in receiver.replies()] == ["00000000000000ee"]


def case(partition: int, length: int) -> Partition:
    """A partition whose log has this many records already."""
    found = Partition(start(partition))
    for number in range(length // 2):
        found.receive(records.command("old", f"k{number}", b"\xc0"))
        found.process()
    return found


def test_a_stamp_of_another_application_forces_nothing_and_is_counted() -> None:
    partition = Partition(start())
    partition.receive(message(9, application=bytes(16)))
    partition.receive(message(9, application=bytes(16)))
    partition.process()
    assert (partition.kinds(), partition.counted) == (
        ["command", "command", "event", "event"],
        ["other application"] * 2,
    )
    assert partition.state.received == {}


@pytest.mark.parametrize("history", [0, 2])
def test_a_message_of_another_history_is_dropped_and_counted(history: int) -> None:
    partition = Partition(start())
    partition.receive(message(9, history=history))
    partition.receive(create(9, history=history))
    assert (partition.log, partition.counted) == ([], ["old history"] * 2)


def test_a_marker_takes_no_backup_but_moves_the_id() -> None:
    partition = Partition(start())
    partition.receive(create(9, marker=True))
    partition.process()
    assert (partition.backups(), partition.state.checkpoint_id, partition.kinds()) == ([], 9, ["create", "created"])


def test_a_create_that_jumps_takes_the_new_backup_only() -> None:
    partition = Partition(start())
    for backup_id in (1, 5):
        partition.receive(create(backup_id))
    partition.process()
    assert [found.id for found in partition.backups()] == [1, 5]


def test_records_that_are_no_inputs_are_not_taken_from_the_inbox() -> None:
    other = Partition(start())
    other.receive(create(1))
    other.process()
    partition = Partition(start())
    partition.receive(other.log[1])
    partition.receive(msgspec.structs.replace(create(1), value=b"{}"))
    assert (partition.log, partition.counted) == ([], ["no input", "unreadable"])


def test_a_repeated_request_is_answered_again_and_processed_once() -> None:
    calls: list[Record] = []

    def counting(command: Record) -> Outcome:
        calls.append(command)
        return (), (), {"number": len(calls)}

    partition = Partition(start(), counting)
    for _ in range(2):
        partition.receive(records.command("order", "a", b"\xc0", request="r1"))
    partition.process()
    partition.receive(records.command("order", "a", b"\xc0", request="r1"))
    assert partition.replies() == [Reply("r1", {"number": 1})] * 3
    assert partition.kinds() == ["command", "command", "event"]


def test_requests_are_forgotten_after_some_thousands() -> None:
    partition = Partition(start())
    for number in range(5_000):
        partition.receive(records.command("order", "a", b"\xc0", request=f"r{number}"))
        partition.process()
    remembered = sum(len(found) for found in partition.state.requests.values())
    assert 3_840 <= remembered <= 4_096
    assert sum(key.startswith("request/") for key in partition.system) == remembered
    assert partition.loaded() == partition.state


def test_a_double_is_acknowledged_again_with_the_position_of_its_processing() -> None:
    partition = Partition(start())
    for _ in range(2):
        partition.receive(message(0))
        partition.process()
    acks = [found for to, found in partition.sent() if to == 1]
    assert len(acks) == 2
    assert {records.source_of(found) for found in acks} == {records.MessageSource("shop.log", 0, 0, records.ACK_INDEX)}
    assert [records.acknowledged(found) for found in acks] == [((5, 0),)] * 2
    assert partition.counted == ["double"]


def test_below_the_low_water_mark_nothing_is_remembered_or_acknowledged() -> None:
    partition = Partition(start())
    partition.receive(message(0, 5))
    partition.receive(message(0, 9, low=9))
    partition.process()
    assert partition.state.received == {1: {(9, 0): 1}}
    before = len(partition.sent())
    partition.receive(message(0, 5))
    assert (partition.counted, len(partition.sent())) == (["double"], before)


def test_a_message_to_the_own_partition_is_acknowledged_like_any_other() -> None:
    own = SentCommand("next", key_of(0), b"\xc0")
    partition = Partition(start(), lambda found: ((), (own,) if records.source_of(found) is None else (), None))
    partition.receive(records.command("order", key_of(0), b"\xc0"))
    partition.process()
    for _, sent in partition.sent():
        partition.receive(sent)
    partition.process()
    for _, sent in partition.sent()[1:]:
        partition.receive(sent)
    partition.process()
    assert partition.state.outbox == {}
    assert partition.kinds() == ["command", "event", "command", "event", "ack"]


def test_a_create_waits_until_all_inputs_before_it_have_their_results() -> None:
    partition = Partition(start(), nothing)
    partition.receive(records.command("order", "a", b"\xc0"))
    assert not machine.drained(partition.state, last_input=0)
    partition.process()
    assert machine.drained(partition.state, last_input=0)
