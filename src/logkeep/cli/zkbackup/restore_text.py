"""What `zkbackup restore` prints: the plan, the result with next steps, and how an interrupted restore ended."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, finding_lines, fit_terminal, title
from logkeep.cli.terminal.messages import Translation, message, words
from logkeep.cli.terminal.text import TerminalStyle, size
from logkeep.errors import LogkeepError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.restore.finish import RestoreEnd, RestoreEndState
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.values import RestoreReceipt, TargetContents
from logkeep.zookeeper.timeline.plan import RestorePath


def plan_text(view: BundleView, prepared: PreparedRestore, look: TerminalStyle) -> str:
    say, planned, path, place = words(look), prepared.planned, prepared.path, prepared.places[0]
    info = view.info
    backup = say(
        "{name}, taken {time}, up to {zxid}", name=view.name, time=info.backup_timestamp, zxid=info.backup_zxid.hex
    )
    epoch = planned.epoch
    lines = [
        *title(say("Restore plan")),
        say.labelled("Backup", backup),
        say.labelled("Tree at", f"{path.last_restored}, {', '.join(map(say.sentence, [path.proof, *path.labels]))}"),
        *_left_out(say, path),
        f"            {say.plural(planned.nodes, 'znode')}, {size(planned.size_bytes)}, "
        + say("sessions: {sessions}", sessions=planned.sessions),
        say.labelled("Data dir", str(place.data.path)),
        say.labelled("Log dir", str(place.log.path)),
        say.labelled("Replaces", _replaced(say, planned.held[0])),
        say.labelled("Server at", say("{zxid} when it starts", zxid=hex_zxid(planned.named))),
        *([say.labelled("Epoch", say("{epoch}, in both epoch files", epoch=epoch))] if epoch is not None else []),
        *_unchecked(say, planned.unchecked),
        *finding_lines(say, planned.findings),
        *(_obstacle(say, each) for each in planned.obstacles),
    ]
    return fit_terminal(lines, look)


def _obstacle(say: Translation, error: LogkeepError) -> str:
    where = f"{error.subject}: " if error.subject else ""
    remedy = f"({say('try: ')}{say.sentence(error.remedy)})"
    return f"{BAD} {say('in the way: ')}{where}{say.sentence(error.what)} {remedy}"


def _left_out(say: Translation, path: RestorePath) -> list[str]:
    if not path.next_left_out:
        return []
    return [say.labelled("Left out", say("{moment} and everything later", moment=path.next_left_out))]


def _replaced(say: Translation, held: TargetContents) -> str:
    if held.empty:
        return say("nothing")
    there = f"{say.plural(held.snapshots, 'snapshot')}, {say.plural(held.logs, 'log')}"
    return say("{files}; kept beside the new data", files=there)


def _unchecked(say: Translation, unchecked: Sequence[str]) -> list[str]:
    return [f"{FAIR} {say('not checked: ')}{say.sentence(what)}" for what in unchecked]


def restored_text(view: BundleView, receipt: RestoreReceipt, kept: Path | None, host: str, look: TerminalStyle) -> str:
    say, target = words(look), receipt.targets[0]
    name, _, port = host.rpartition(":")
    places = f"--zk-data-dir {shell_word(target.data_dir)} --zk-log-dir {shell_word(target.log_dir)}"
    beside = [f"  {path}" for path in target.kept]
    lines = [
        f"{GOOD} {say('Restore completed: {name} at {zxid}', name=view.name, zxid=hex_zxid(receipt.zxid))}",
        "",
        *_receipt_lines(say, receipt),
        *([say.labelled("Receipt", str(kept))] if kept else []),
        *([say("The replaced data is kept in:"), *beside] if beside else []),
        *_unchecked(say, receipt.unchecked),
        *finding_lines(say, receipt.findings),
        "",
        say("Next steps:"),
        say("1. Start ZooKeeper:"),
        "   zkServer.sh start",
        "",
        say("2. Check its zxid:"),
        f"   echo srvr | nc {shell_word(name or host)} {shell_word(port or 2181)} | grep Zxid",
        _expected(say, receipt),
        "",
        say("3. Check the data:"),
        f"   zkCli.sh -server {shell_word(host)}",
        "   ls /",
        "",
        say("4. If it is not what you wanted, stop ZooKeeper and roll back:"),
        "   zkServer.sh stop",
        f"   zkbackup restore --rollback {places}",
        "   zkServer.sh start",
        "",
        say("If a Logkeep repository holds backups of this server, the next one needs --new-history."),
    ]
    return fit_terminal(lines, look)


def _receipt_lines(say: Translation, receipt: RestoreReceipt) -> list[str]:
    digests, transactions = receipt.digests_compared, receipt.transactions
    compared = say(
        "{digests} compared over {transactions}",
        digests=say.plural(digests, "digest"),
        transactions=say.plural(transactions, "transaction"),
    )
    sessions, nodes = (
        say.plural(receipt.dropped_sessions, "session"),
        say.plural(receipt.dropped_ephemerals, "ephemeral"),
    )
    return [
        say.labelled("Proof", f"{receipt.proof}; {compared}"),
        say.labelled("Tree", say.plural(receipt.nodes, "znode")),
        *([say.labelled("Dropped", f"{sessions}, {nodes}")] if receipt.dropped_sessions else []),
    ]


def _expected(say: Translation, receipt: RestoreReceipt) -> str:
    expected = say("   expected, until the first session: {zxid}", zxid=hex_zxid(receipt.named_zxid))
    if receipt.zxid == receipt.named_zxid:
        return expected
    return expected + say(" (its tree is at {zxid})", zxid=hex_zxid(receipt.zxid))


_ENDED: Final = {
    RestoreEndState.NEW: (GOOD, message("the restored data is in place")),
    RestoreEndState.OLD: (GOOD, message("the earlier data is back in place")),
    RestoreEndState.NOTHING: (BAD, message("nothing was restored; run the restore again")),
}


def finish_text(ended: RestoreEnd, look: TerminalStyle, receipt: Path | None = None) -> str:
    say, (sign, which) = words(look), _ENDED[ended.outcome]
    lines = [
        f"{sign} {say('Restore {name}: {outcome}', name=ended.restore, outcome=say(which))}",
        *(f"  {path}" for path in ended.data_dirs),
        *([say("Receipt: {path}", path=receipt)] if receipt else []),
        *([say("Kept beside it:"), *(f"  {path}" for path in ended.kept)] if ended.kept else []),
        *_unchecked(say, ended.unchecked),
        *finding_lines(say, ended.findings),
        *(say("Next: {step}", step=say.sentence(step)) for step in ended.next_steps),
    ]
    return fit_terminal(lines, look)
