"""What an operator does after a restore, or after its end by a continue or a rollback, as lines. Pure."""

from collections.abc import Iterator

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.restore.values import RestoreReceipt

_NEW_HISTORY = "zxids mean another history from here on: the next incremental backup needs --new-history"
_OLD_MEANING = "if a backup was taken since the restore, the next one needs --new-history: zxids have their old meaning"


def next_steps(receipt: RestoreReceipt) -> Iterator[str]:
    """Without commands of a program: those are for the one who shows them."""
    yield f"the tree is the one after transaction {hex_zxid(receipt.zxid)}"
    if receipt.epoch is None:
        yield f"start the server: it says that it is at {hex_zxid(receipt.named_zxid)}, above all that was known"
    else:
        yield (
            f"start the members when all are restored: epoch {receipt.epoch} is in both epoch files of each, so the "
            f"next transaction is {hex_zxid((receipt.epoch + 1 << 32) + 1)} or above"
        )
    yield _NEW_HISTORY
    for target in receipt.targets:
        for kept in target.kept:
            yield f"what was there before is in {kept}; a rollback of {target.data_dir} puts it back"


def steps_after_end(*, new: bool, was_done: bool) -> Iterator[str]:
    """`new`: the restored data is in place. `was_done`: servers may have run on it, and backups may be of them."""
    if new:
        yield "start the server; of an ensemble all members, when every one of them is restored"
        yield _NEW_HISTORY
        return
    yield "start the server; of an ensemble all members, when every one of them is rolled back"
    if was_done:
        yield _OLD_MEANING


def steps_after_nothing(*, was_done: bool) -> Iterator[str]:
    """The restore that was to be continued had nothing to continue from: it, or a rollback of it, had been killed."""
    yield "run the restore again: what is in place is what was there before it"
    if was_done:
        yield _OLD_MEANING
