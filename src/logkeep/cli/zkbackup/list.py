"""`zkbackup list`: the backups of a directory, and which of them can be restored."""

from typing import Any, Final

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import CONDITION_WORDS, SIGNS, condition_word, fit_terminal, framed, title
from logkeep.cli.terminal.messages import message, words
from logkeep.cli.terminal.text import TerminalStyle, size
from logkeep.cli.zkbackup.bundles import ListedBundle, list_bundles
from logkeep.cli.zkbackup.command import CommandRun, ZkCommand
from logkeep.cli.zkbackup.options import BASE_DIR, LIMIT, LIST_FORMAT, SORT_BY
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.shell_words import shell_word
from logkeep.model.time import rfc3339
from logkeep.zookeeper.model.condition import Condition

_OPTIONS = (BASE_DIR, LIST_FORMAT, SORT_BY, LIMIT)

_MEANINGS: Final = {
    Condition.VALID: message("complete, can be restored"),
    Condition.PARTIAL: message("damage was repaired or is in an older part; can be restored"),
    Condition.DAMAGED: message("cannot be restored, or its document cannot be read"),
    Condition.UNVERIFIED: message("no verification has been completed"),
}
_UNREAD: Final = message("not read back: checked while it was copied; its files on disk were not read since")
_UNPROVEN: Final = message("unproven end: no server confirmed that its last transactions were committed")


def list_backups(run: CommandRun) -> CommandAnswer:
    """List the backups of a directory.

    The status is that of the last stored verification. No data is read, so this is quick however large the backups
    are.
    """
    base = run[BASE_DIR].absolute()
    everything = sorted_by(run[SORT_BY], list_bundles(base))
    shown = everything[: run[LIMIT] or None]
    if run[LIST_FORMAT] == "simple":
        return CommandAnswer({}, lambda look: "\n".join(look.line(one.name) for one in shown))
    document = {
        "backup_base_dir": str(base),
        "total": len(everything),
        "backups": [as_document(one) for one in shown],
    }
    return CommandAnswer(document, lambda look: _text(str(base), len(everything), shown, look))


def sorted_by(key: str, bundles: list[ListedBundle]) -> list[ListedBundle]:
    """Newest or largest first. They come newest first, and the sort keeps that order for equal ones."""
    if key == "size":
        return sorted(bundles, key=lambda one: one.size_bytes, reverse=True)
    if key == "zxid":
        return sorted(bundles, key=lambda one: one.zxid, reverse=True)
    return bundles


def as_document(one: ListedBundle) -> dict[str, Any]:
    return {
        "backup_id": one.name,
        "backup_dir": str(one.directory),
        "backup_timestamp": rfc3339(one.taken),
        "backup_zxid": {"hex": hex_zxid(one.zxid), "decimal": one.zxid},
        "size": one.size_bytes,
        "status": one.condition.value,
        "unproven_end": one.unproven_end,
        "read_back": one.read_back,
        "problem": one.problem,
    }


def _text(base: str, total: int, shown: list[ListedBundle], look: TerminalStyle) -> str:
    say, rows = words(look), [_row(one, look) for one in shown]
    head = [*title(say("ZooKeeper backups")), say("Backup base directory: {base}", base=base)]
    head += [say("Backups: {total}", total=total), ""]
    headers = (say("Backup ID"), say("Time"), "ZXID", say("Size"), say("Status"))
    table = framed(headers, rows, look) if rows else say("none")
    hidden = total - len(shown)
    more = [say("... and {hidden} more; --limit 0 shows all", hidden=hidden)] if hidden else []
    problems = [f"{one.name}: {say(one.problem)}" for one in shown if one.problem]
    meanings = (f"  - {SIGNS[s]} {say(CONDITION_WORDS[s])}: {say(text)}" for s, text in _MEANINGS.items())
    legend = ["", say("Status:"), *meanings]
    legend += [f"  - {say(_UNPROVEN)}"] if any(one.unproven_end for one in shown) else []
    legend += [f"  - {say(_UNREAD)}"] if any(not one.read_back for one in shown) else []
    command = f"zkbackup info <backup-id> --backup-base-dir {shell_word(base)}"
    details = say("`{command}` shows details", command=command)
    tail = [*more, *problems, *legend, "", details]
    return "\n".join([fit_terminal(head, look), table, fit_terminal(tail, look)])


def _row(one: ListedBundle, look: TerminalStyle) -> tuple[str, ...]:
    moment = one.taken.astimezone(look.zone).strftime("%Y-%m-%d %H:%M:%S")
    status = condition_word(words(look), one.condition, unproven_end=one.unproven_end, read_back=one.read_back)
    return one.name, moment, hex_zxid(one.zxid), size(one.size_bytes), status


COMMAND = ZkCommand(list_backups, own=_OPTIONS, exits=(0, 1, 40, 52))
