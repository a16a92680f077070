"""A processor over a log in files: what is durable when, replay, repeated messages, errors of handlers."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logkeep.application import Command, Context
from logkeep.checkpoint import state_digest
from logkeep.checkpoint.records import ACK_INDEX, CheckpointDocument, MessageSource, acknowledgement
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.errors import Damaged, StoreFull
from tests.support.processors import ProcessorGroup

_CALLS: list[str] = []


def _put(command: Command, state: Any, context: Context) -> None:
    _CALLS.append(command.key)
    state[command.key] = state.get(command.key, 0) + command.value
    context.reply(state[command.key])


def _move(command: Command, state: Any, context: Context) -> None:
    state[command.key] = state.get(command.key, 100) - command.value["amount"]
    context.send("put", key=command.value["to"], value=command.value["amount"])


def _fail(command: Command, state: Any, context: Context) -> None:
    state[command.key] = "never"
    context.send("put", key="a", value=1)
    raise ZeroDivisionError("no luck")


def _forget(command: Command, state: Any, context: Context) -> None:
    del state[command.key]


def _report(command: Command, _state: Any, context: Context) -> None:
    context.external("sink", command.value)


def _much(command: Command, state: Any, context: Context) -> None:
    value = b"x" * (1_000_000)
    for number in range(command.value["writes"]):
        state[f"{command.key}{number}"] = value
    for _ in range(command.value["sends"]):
        context.send("put", key="other", value=value)


HANDLERS = {"put": _put, "move": _move, "fail": _fail, "forget": _forget, "report": _report, "much": _much}


@pytest.fixture
def group(tmp_path: Path) -> Iterator[ProcessorGroup]:
    _CALLS.clear()
    made = ProcessorGroup(tmp_path, HANDLERS)
    yield made
    made.close()


def _split(group: ProcessorGroup) -> tuple[str, str]:
    """Two keys of different partitions: of 0 and of 1."""
    from logkeep.checkpoint.routing import partition_of  # noqa: PLC0415 - here only

    keys = [f"k{number}" for number in range(50)]
    return tuple(next(key for key in keys if partition_of(key, 2) == number) for number in (0, 1))  # type: ignore[return-value] # two


def test_a_batch_sees_the_changes_of_earlier_commands_and_replies_after_them(group: ProcessorGroup) -> None:
    for number in range(5):
        group.client("put", "a", 1, request=f"r{number}")
    group.drain()
    assert group.replies == [(f"r{number}", number + 1) for number in range(5)]
    kinds = group.kinds(0) + group.kinds(1)
    assert kinds == ["command"] * 5 + ["event"] * 5  # two appends for five commands
    assert group.state() == {"a": 5}


@pytest.mark.parametrize("moment", ["appended event", "state stored"])
def test_large_results_are_appended_in_parts_and_continued_after_a_crash(tmp_path: Path, moment: str) -> None:
    """512 results of 7 MiB in one append would be 3.5 GiB, more than a batch can hold."""
    made = ProcessorGroup(tmp_path, HANDLERS, 1, lambda number: SqliteState(tmp_path / f"state{number}"))
    try:
        for number in range(7):
            made.client("much", f"m{number}-", {"writes": 6, "sends": 0}, request=f"r{number}")
            made.client("put", "a", 1)

        def die(_: int, step: str) -> None:
            if step == moment and made.logs[0].end > 14:
                raise KeyboardInterrupt

        made.watch = die
        with pytest.raises(KeyboardInterrupt):
            made.drain()
        assert 14 < made.logs[0].end < 28, "some inputs have results, others wait"
        made.watch = lambda _partition, _step: None
        made.processors[0].state.backend.close()
        made.restart(0)
        made.drain()
        assert made.kinds(0) == ["command"] * 14 + ["event"] * 14
        ends = [made.logs[0].batch_start(position) for position in range(14, 28)]
        assert len(set(ends)) >= 3, "6 MB each, 16 MiB and one result in an append at most"
        found = made.state()
        assert (found["a"], len(found)) == (7, 7 * 6 + 1)
    finally:
        made.close()


def test_large_commands_are_appended_in_parts(tmp_path: Path) -> None:
    """512 commands of 1 MiB would be a batch of 512 MiB."""
    made = ProcessorGroup(tmp_path, HANDLERS, 1)
    try:
        for number in range(40):
            made.client("report", f"k{number}", "x" * 1_000_000, request=f"r{number}")
        made.drain()
        assert sorted(made.kinds(0)) == ["command"] * 40 + ["event"] * 40
        inputs = [position for position, kind in enumerate(made.kinds(0)) if kind == "command"]
        assert len({made.logs[0].batch_start(position) for position in inputs}) == 3
    finally:
        made.close()


def test_a_repeated_request_is_processed_once_and_answered_again(group: ProcessorGroup) -> None:
    group.client("put", "a", 1, request="same")
    group.client("put", "a", 1, request="same")
    group.drain()
    group.client("put", "a", 1, request="same")
    group.drain()
    assert group.state() == {"a": 1}
    assert group.replies == [("same", 1)] * 3
    assert _CALLS == ["a"]


def test_a_handler_that_raises_rejects_its_command_only(
    group: ProcessorGroup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "logkeep.application")  # a command with -q in the same process raised it
    group.client("fail", "a", request="bad")
    group.client("unknown", "a", request="none")
    group.client("put", "a", 2, request="good")
    group.drain()
    assert group.state() == {"a": 2}
    assert dict(group.replies) == {
        "bad": {"error": "ZeroDivisionError: no luck"},
        "none": {"error": "no handler for the command 'unknown', but for " + ", ".join(sorted(HANDLERS))},
        "good": 2,
    }
    assert "rejected command 'fail' of key 'a'" in caplog.text
    assert [logged.exc_info is not None for logged in caplog.records] == [True, False]
    assert caplog.text.count("  File ") == 1, "the user's own calls only"
    assert group.processors[0].state.machine.outbox.get(0) is None


def test_values_that_cannot_be_stored_reject_the_command(tmp_path: Path) -> None:
    def odd(command: Command, state: Any, context: Context) -> None:
        cases: dict[str, Callable[[], object]] = {
            "object": lambda: state.update(a=object()),
            "large": lambda: state.update(a=bytes(2 << 20)),
            "reserved": lambda: state.update({"lk/a": 1}),
            "reply": lambda: context.reply(object()),
            "external": lambda: context.external("sink", -1),
            "missing": lambda: state["nothing"],
        }
        cases[command.value]()

    group = ProcessorGroup(tmp_path, {"odd": odd})
    for case in ("object", "large", "reserved", "reply", "external", "missing"):
        group.client("odd", "a", case, request=case)
    group.drain()
    assert group.state() == {}
    assert all(set(value) == {"error"} for _, value in group.replies), group.replies  # type: ignore[call-overload] # a dict
    group.close()


def test_replay_applies_no_acknowledgement_from_behind_a_create_without_a_result(group: ProcessorGroup) -> None:
    """Otherwise a snapshot that a backup of this create may use has not got the message, which the cut still sends."""
    here, there = _split(group)
    group.client("move", here, {"amount": 1, "to": there})
    group.processors[0].step()
    group.create(0, 7)
    [created] = group.queues.receive(0, 1)
    machine = group.processors[0].state.machine
    acknowledged = acknowledgement([(0, 0)], machine.stamp, MessageSource("shop.log", 1, 0, ACK_INDEX))
    for record in (created, acknowledged):
        group.logs[0].append([record])
    group.restart(0)
    recovered = group.processors[0].state.machine
    assert (recovered.processed, list(recovered.outbox[1])) == (0, [(0, 0)])
    group.processors[0].step()
    assert not group.processors[0].state.machine.outbox
    [(_, _, cut)] = group.backups
    assert (cut.position, cut.pending) == (2, 1)


def test_r25_r26_replay_applies_write_sets_and_calls_no_handler(group: ProcessorGroup) -> None:
    zero, one = _split(group)
    group.client("move", zero, {"amount": 30, "to": one})
    group.create(0, 5)
    group.client("put", one, 4)
    group.client("report", zero, 77)
    group.drain()
    group.client("put", zero, 9)
    group.client("forget", zero)
    group.drain()
    before = [(p.state.machine, p.state.digest, p.state.cut, dict(p.state.backend.items())) for p in group.processors]
    calls, backups = len(_CALLS), len(group.backups)
    for number in (0, 1):
        group.restart(number)
    after = [(p.state.machine, p.state.digest, p.state.cut, dict(p.state.backend.items())) for p in group.processors]
    assert after == before
    assert (len(_CALLS), len(group.backups)) == (calls, backups)
    for processor in group.processors:
        items = processor.state.backend.items()
        assert processor.state.digest == state_digest.as_text(state_digest.digest_of(items))


def test_r21_backup_begins_with_the_position_and_digest_of_the_create(group: ProcessorGroup) -> None:
    zero, _ = _split(group)
    group.client("put", zero, 1)
    group.client("report", zero, 12)
    group.drain()
    digest = group.processors[0].state.digest
    group.client("put", zero, 1)
    group.create(0, 7)
    group.client("put", zero, 1)
    group.drain()
    (number, take, cut), *_ = group.backups
    kinds = group.kinds(0)
    assert (number, take.id, kinds[take.position], cut.cut_end) == (0, 7, "create", take.position + 1)
    assert kinds[take.position - 1 : take.position + 2] == ["event", "create", "created"]
    assert cut.external == {"sink": 12}
    assert cut.digest != digest
    position = take.position
    log = group.logs[0]
    bases = {log.batch_start(at) for at in range(log.end)}
    assert {position, position + 1} <= bases  # the create is alone in its batch
    assert group.processors[0].answers[7].source_position == position


def test_r28_a_message_with_a_newer_id_forces_the_create_before_it(group: ProcessorGroup) -> None:
    zero, one = _split(group)
    group.create(0, 3)
    group.processors[0].step()
    group.client("move", zero, {"amount": 1, "to": one})
    group.drain()
    assert group.kinds(1)[:3] == ["create", "created", "command"]
    assert [(number, take.id, take.nonce) for number, take, _ in group.backups] == [
        (0, 3, "0123456789abcdef"),
        (1, 3, ""),
    ]


def test_a_marker_moves_the_id_without_a_backup(group: ProcessorGroup) -> None:
    group.create(0, 4, marker=True)
    group.drain()
    assert group.backups == []
    assert group.processors[0].state.machine.checkpoint_id == 4


def _scenario(group: ProcessorGroup) -> None:
    zero, one = _split(group)
    for number in range(6):
        source, target = (zero, one) if number % 2 else (one, zero)
        group.client("move", source, {"amount": number + 1, "to": target}, request=f"m{number}")
        if number == 3:
            group.create(0, 2)


def test_a_crash_between_any_two_parts_of_a_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    labels: list[tuple[int, str]] = []
    calm = ProcessorGroup(tmp_path / "calm", HANDLERS)
    calm.watch = lambda number, step: labels.append((number, step))
    _scenario(calm)
    calm.drain()
    expected = calm.state()
    calm.close()
    assert len(labels) > 20

    class Crash(BaseException):
        pass

    for victim in range(len(labels)):
        group = ProcessorGroup(tmp_path / str(victim), HANDLERS)
        left = iter(range(victim, -1, -1))

        def watch(number: int, _step: str, left: Iterator[int] = left) -> None:
            if next(left, -1) == 0:
                raise Crash(number)

        group.watch = watch
        _scenario(group)
        try:
            group.drain()
        except Crash as crash:
            group.queues.waiting[crash.args[0]].clear()  # a process loses its queues
            group.restart(crash.args[0])
            _scenario(group)  # clients repeat what got no reply
        group.drain()
        assert group.state() == expected, labels[victim]
        group.close()


def test_a_full_disk_in_the_middle_of_a_step_changes_nothing(
    group: ProcessorGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    zero, _ = _split(group)
    group.client("put", zero, 5, request="r")
    processor, log = group.processors[0], group.logs[0]
    real, calls = log.append, list[int]()

    def full_at_second(records: Any) -> int:
        calls.append(1)
        if len(calls) == 2:
            raise StoreFull("no space is left for the log")
        return real(records)

    monkeypatch.setattr(log, "append", full_at_second)
    with pytest.raises(StoreFull):
        processor.step()
    assert (group.replies, list(processor.state.backend.items())) == ([], [])
    group.drain()
    assert group.replies == [("r", 5)]
    assert group.kinds(0) == ["command", "event"]


def test_times_of_records_never_go_back(group: ProcessorGroup) -> None:
    zero, _ = _split(group)
    group.client("put", zero, 1)
    group.drain()
    group.now_ms -= 3_600_000
    group.client("put", zero, 1)
    group.drain()
    group.restart(0)
    group.client("put", zero, 1)
    group.drain()
    times = [record.timestamp_ms for record in group.logs[0].read(0, 1 << 30)]
    assert times == sorted(times)


def test_a_state_ahead_of_its_log_is_refused(tmp_path: Path) -> None:
    group = ProcessorGroup(tmp_path, HANDLERS)
    zero, _ = _split(group)
    group.client("put", zero, 1)
    group.drain()
    backend = group.processors[0].state.backend
    group.close()
    for path in (tmp_path / "p0").glob("*.log"):
        path.unlink()
    with pytest.raises(Damaged, match="ahead of the log"):
        ProcessorGroup(tmp_path, HANDLERS, backend=lambda number: backend if number == 0 else type(backend)())


@pytest.mark.parametrize(("first", "second", "answered"), [("aa", "bb", "aa"), ("", "bb", "bb")])
def test_a_create_whose_id_was_used_is_answered_with_the_nonce_of_the_first(
    group: ProcessorGroup, first: str, second: str, answered: str
) -> None:
    """Otherwise its sender believes that the checkpoint is its own; one that a message forced is anybody's."""
    for nonce in (first, second):
        group.create(0, 7, nonce, marker=True)
    group.drain()
    to, answer = group.replies[-1]
    assert to == second
    assert isinstance(answer, CheckpointDocument)
    assert (answer.nonce, group.processors[0].answers[7].nonce) == (answered, answered)


@pytest.mark.parametrize(("writes", "sends", "done"), [(7, 0, True), (8, 0, False), (0, 8, False), (4, 4, False)])
def test_a_command_whose_event_is_too_large_for_a_record_is_answered_with_the_error(
    group: ProcessorGroup, writes: int, sends: int, *, done: bool
) -> None:
    """On Kafka such a record is refused again and again, and its partition processes nothing else."""
    group.client("much", "a", {"writes": writes, "sends": sends}, request="r")
    group.drain()
    reply = group.replies[0][1]
    assert reply is None if done else "the limit is 7340032" in reply["error"]  # type: ignore[index]
    assert bool(group.state()) is done
