"""The bytes of every kind of record in an application's log. They never change."""

import pytest

from logkeep.checkpoint import records
from logkeep.checkpoint.records import CheckpointDocument, Kind, MessageSource, Record, SentCommand, Stamp

STAMP = Stamp(bytes(range(16)), 2, 42)
SOURCE = MessageSource("shop.log", 3, 17, 1)
COMMAND = records.command("order", "o-1", b"\x81\xa5total\x05", request="req-1")
MESSAGE = records.message(SentCommand("charge", "käthe", b"\x05"), STAMP, SOURCE, 16)
EVENT = records.event(
    MESSAGE.at(9, 0),
    (("a", b"\x01"), ("b", None)),
    (SentCommand("charged", "o-1", b"\xc3"),),
    {"ok": True},
    identified=True,
)
ACK = records.acknowledgement([(17, 1)], STAMP, MessageSource("shop.log", 0, 9, records.ACK_INDEX))
DOCUMENT = CheckpointDocument(
    repository="r" * 26, application=STAMP.application.hex(), history=2, id=42, nonce="00112233445566aa", reason="asked"
)
STAMP_BYTES = "01000102030405060708090a0b0c0d0e0f00000002000000000000002a"
SOURCE_BYTES = "01000873686f702e6c6f6700000003000000000000001100000001"
ACK_SOURCE = "01000873686f702e6c6f67000000000000000000000009ffffffff"
COMMAND_KIND, LOW = ("lk-t", "0101"), ("lk-low", "0000000000000010")

GOLDEN: dict[str, tuple[Record, str, str, list[tuple[str, str]]]] = {
    "command": (COMMAND, "6f2d31", "81a5746f74616c05", [COMMAND_KIND, ("lk-n", "6f72646572"), ("lk-r", "7265712d31")]),
    "message": (
        MESSAGE,
        "6bc3a4746865",
        "05",
        [COMMAND_KIND, ("lk-n", "636861726765"), ("lk-cp", STAMP_BYTES), ("lk-src", SOURCE_BYTES), LOW],
    ),
    "event": (
        EVENT,
        "6bc3a4746865",
        "94099292a161c4010192a162c09193a763686172676564a36f2d31c401c381a26f6bc3",
        [("lk-t", "0201"), ("lk-in", SOURCE_BYTES), LOW],
    ),
    "ack": (ACK, "", "91921101", [("lk-t", "0601"), ("lk-cp", STAMP_BYTES), ("lk-src", ACK_SOURCE)]),
}  # fmt: skip
LINE = (
    '{"type":"checkpoint","version":1,"repository":"rrrrrrrrrrrrrrrrrrrrrrrrrr","application":"000102030405060708090a0b0c0d0e0f",'
    '"history":2,"id":42,"nonce":"00112233445566aa","reason":"asked","source_position":-1,"latest":-1,"marker":false}\n'
)


@pytest.mark.parametrize("name", GOLDEN)
def test_bytes_of_a_record(name: str) -> None:
    record, key, value, headers = GOLDEN[name]
    assert ((record.key or b"").hex(), record.value.hex()) == (key, value)
    assert [(found, data.hex()) for found, data in record.headers] == headers


@pytest.mark.parametrize(("kind", "byte"), [(Kind.CREATE, 3), (Kind.CREATED, 4), (Kind.IGNORED, 5)])
def test_bytes_of_checkpoint_records(kind: Kind, byte: int) -> None:
    record = records.checkpoint(kind, DOCUMENT)
    assert record.key == f"lk/{kind.name.lower()}/42".encode()
    assert record.headers == (("lk-t", bytes((byte, 1))),)
    line, _, sealed = record.value.partition(b"\n")
    assert (line.decode() + "\n", len(sealed)) == (LINE, 78)
    assert records.document_of(record) == DOCUMENT


def test_what_was_written_is_read_back() -> None:
    assert records.stamp_of(MESSAGE) == STAMP
    assert (records.source_of(MESSAGE), records.low_of(MESSAGE), MESSAGE.text(records.NAME)) == (SOURCE, 16, "charge")
    value = records.event_value(EVENT)
    assert (value.source_position, value.writes, value.reply) == (9, (("a", b"\x01"), ("b", None)), {"ok": True})
    assert value.sends == (SentCommand("charged", "o-1", b"\xc3"),)
    assert records.source_of(EVENT, records.INPUT) == SOURCE
    assert records.acknowledged(ACK) == ((17, 1),)
    assert records.request_of(COMMAND) == "req-1"
    assert records.read(COMMAND.key, COMMAND.value, COMMAND.headers, 7, 8) == COMMAND.at(7, 8)
