"""What an operator does after a restore, a continue or a rollback, as lines of text. Pure."""

from collections.abc import Iterator

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.restore.values import RestoreReceipt

_NEW_HISTORY = "zxids belong to a new history from here on: the next incremental backup needs --new-history"
_OLD_MEANING = (
    "if a backup was taken since the restore, the next one needs --new-history: zxids belong to the old history again"
)


def next_steps(receipt: RestoreReceipt) -> Iterator[str]:
    """Without command lines: the program that prints the steps adds its own."""
    yield f"the tree is the one after transaction {hex_zxid(receipt.zxid)}"
    if receipt.epoch is None:
        yield f"start the server: it reports zxid {hex_zxid(receipt.named_zxid)}, above all known zxids"
    else:
        yield (
            f"start the members when all are restored: epoch {receipt.epoch} is in both epoch files of each, so the "
            f"next transaction is {hex_zxid((receipt.epoch + 1 << 32) + 1)} or above"
        )
    yield _NEW_HISTORY
    for target in receipt.targets:
        for kept in target.kept:
            yield f"the data from before is in {kept}; a rollback of {target.data_dir} restores it"


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
    """A continue found nothing staged: the restore, or a rollback of it, had been killed."""
    yield "run the restore again: the data from before it is in place"
    if was_done:
        yield _OLD_MEANING
