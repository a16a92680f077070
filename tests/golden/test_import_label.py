"""The label of an imported backup, byte for byte: every later release reads it."""

from logkeep.kafka.record.import_label import Doubt, ImportedPartition, ImportLabel, ToolLabel
from logkeep.repository.chain.documents import seal, unseal

LABEL = ImportLabel(
    repository="r" * 32,
    source="old",
    id=20261118120000,
    label=ToolLabel("oso", "OSO kafka-backup", "0.25 or newer", ("topic ids",)),
    url="s3://bucket/nightly",
    doubtful=(ImportedPartition("orders", 3, (Doubt("markers", 2, "segment-1.bin"),)),),
)
GOLDEN = (
    b'{"type":"kafka-import","version":1,"repository":"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr","source":"old",'
    b'"id":20261118120000,"label":{"format":"oso","tool":"OSO kafka-backup","version":"0.25 or newer",'
    b'"unknown":["topic ids"]},"url":"s3://bucket/nightly","doubtful":[{"topic":"orders","partition":3,'
    b'"doubts":[{"code":"markers","count":2,"first":"segment-1.bin"}]}]}\n'
    b'{"sha256":"b2870da6edb21378a18fb8378bf281f60520526ed66af57357eebc6a8f51e9b6"}\n'
)


def test_the_bytes_of_the_label_do_not_change() -> None:
    assert seal(LABEL) == GOLDEN
    assert unseal(GOLDEN, ImportLabel, "here") == LABEL
