"""`zkbackup verify`: check whether a backup can be restored; `--fix` repairs what can be repaired."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, condition_word, finding_lines, fit_terminal, title
from logkeep.cli.terminal.messages import Translation, message, words
from logkeep.cli.terminal.text import TerminalStyle, size
from logkeep.cli.zkbackup.command import CommandRun
from logkeep.cli.zkbackup.metrics import verify_samples
from logkeep.cli.zkbackup.options import BACKUP_DIR, FIX, LEVEL
from logkeep.cli.zkbackup.verification.fix import FixedBundle, fix
from logkeep.cli.zkbackup.verification.run import check_bundle
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.bundle.document import LogEntry, SnapshotEntry
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.timeline.plan import Interval
from logkeep.zookeeper.verify.run import Level
from logkeep.zookeeper.verify.verdict import JudgedBackup

_ASSESSMENT = {
    Condition.VALID: (GOOD, message("the backup can be restored")),
    Condition.PARTIAL: (FAIR, message("the backup can be restored; part of it was repaired or is missing")),
    Condition.DAMAGED: (BAD, message("the end of the backup cannot be restored")),
}
_DAMAGED_WITHIN = FAIR, message("the backup can be restored; a file in it is damaged")
_ADVICE = {
    Condition.VALID: message("nothing to do; keep it as a restore point"),
    Condition.PARTIAL: message("take a new backup, and keep this one until the new one is verified"),
    Condition.DAMAGED: message("take a new backup now; restore from this one only to the intervals above"),
}
_CHANGED = message("take a new backup now; before a restore from this one, recover its document as the finding says")


def verify_text(view: BundleView, checked: JudgedBackup, repairs: list[str], look: TerminalStyle) -> str:
    say, info, findings = words(look), view.info, checked.findings
    status = condition_word(
        say, checked.condition, unproven_end=checked.unproven_end, read_back=checked.verified.reads_data
    )
    lines = [
        *title(say("Backup verification")),
        say("Backup ID: {name}", name=view.name),
        *(say("Taken: {time}", time=info.backup_timestamp), say("ZXID: {zxid}", zxid=info.backup_zxid.hex)),
        *(say("Level: {level}", level=checked.level), "", _structure(say, findings), _document(say, checked), ""),
        *(say("Snapshots:"), *(_snapshot(say, entry, findings) for entry in info.files.snapshots), ""),
        *(say("Transaction logs:"), *(line for e in info.files.txnlogs for line in _log(say, e, findings)), ""),
        *_coverage(say, checked),
        *([say("Repairs:"), *(f"  {FAIR} {say.sentence(line)}" for line in repairs), ""] if repairs else []),
        say("Result: {result}", result=_assessment(say, checked)),
        say("  - Status: {status}, quality {score}/100", status=status, score=checked.score),
        *_proof(say, checked),
        *finding_lines(say, findings),
        *("", say("Advice:"), *_advice(say, view, checked, fixed=bool(repairs))),
    ]
    return fit_terminal(lines, look)


def _document(say: Translation, checked: JudgedBackup) -> str:
    changed = checked.verified.document_changed
    state = f"{BAD} {say('changed since it was written')}" if changed else f"{GOOD} {say('valid')}"
    return say("Document: {state}", state=state)


def _assessment(say: Translation, checked: JudgedBackup) -> str:
    if checked.deeper is not None:
        levels = {"earlier": checked.deeper.level, "level": checked.level}
        return f"{BAD} " + say(
            "level {earlier} found damage before; level {level} is not deep enough to clear it", **levels
        )
    within = checked.condition is Condition.PARTIAL and checked.verified.damaged_files
    sign, text = _DAMAGED_WITHIN if within else _ASSESSMENT[checked.condition]
    return f"{sign} {say(text)}"


def _advice(say: Translation, view: BundleView, checked: JudgedBackup, *, fixed: bool) -> list[str]:
    """`fixed`: a repair has done what it can. A command has a line of its own, to be copied."""
    found = checked.verified
    if found.document_changed:
        return [f"  - {say(_CHANGED)}"]
    again = f"      zkbackup verify --backup-dir {shell_word(view.path)}"
    fixing = f"{again} --fix"
    if checked.deeper is not None and not found.damaged_files:
        deeper = f"{again} --level {shell_word(checked.deeper.level)}"
        return [
            say("  - to check whether the earlier damage is still there:"),
            deeper,
            say("  - to repair it:"),
            fixing,
        ]
    if found.damaged_files and found.damaged_files == found.unsealed_files and not fixed:
        return [say("  - nothing is lost; to store the affected files again:"), fixing]
    repairing = [say("  - to repair what can be repaired, with the help of the other backups beside it:"), fixing]
    return [*(repairing if found.damaged_files and not fixed else []), f"  - {say(_ADVICE[checked.condition])}"]


def _structure(say: Translation, findings: tuple[Finding, ...]) -> str:
    missing = [f.where for f in findings if f.code == "object-missing" and f.severity is Severity.WARNING]
    without = f"{FAIR} {say('without {names}', names=', '.join(missing))}"
    return say("Directory: {state}", state=without if missing else f"{GOOD} {say('complete')}")


def _about(name: str, findings: tuple[Finding, ...]) -> Finding | None:
    """The gravest finding about this file."""
    own = [f for f in findings if f.where.rpartition("/")[2].partition("@")[0] == name]
    order = (Severity.DAMAGE, Severity.WARNING, Severity.NOTE)
    return min(own, key=lambda f: order.index(f.severity), default=None)


def _snapshot(say: Translation, entry: SnapshotEntry, findings: tuple[Finding, ...]) -> str:
    facts = f"(ZXID: {entry.zxid}, {size(entry.size)})"
    wrong = _about(entry.name, findings)
    if wrong is None or wrong.severity is Severity.NOTE:
        return f"  {entry.name}: {GOOD} {say('valid')} {facts}"
    return f"  {entry.name}: {BAD if wrong.severity is Severity.DAMAGE else FAIR} {wrong.code} {facts}"


def _log(say: Translation, entry: LogEntry, findings: tuple[Finding, ...]) -> list[str]:
    facts = f"({say.plural(entry.transaction_count, 'transaction')}, {size(entry.size)})"
    wrong = _about(entry.name, findings)
    if wrong is not None and wrong.severity is Severity.DAMAGE:
        return [f"  {entry.name}: {BAD} {wrong.code} {facts}", f"      {say.sentence(wrong.what)}"]
    note = [f"      {say.sentence(entry.note)}"] if entry.note else []
    if entry.status == "damaged":
        return [f"  {entry.name}: {FAIR} {say('part of a damaged file')} {facts}", *note]
    return [f"  {entry.name}: {GOOD} {say('valid')} {facts}", *note]


def _coverage(say: Translation, checked: JudgedBackup) -> list[str]:
    intervals = [i for found in checked.verified.reachable.values() for i in found]
    if not intervals:
        return [say("Coverage:"), f"  {BAD} {say('no point in time can be restored')}", ""]
    first, last = min(i.first.zxid for i in intervals), max(i.last.zxid for i in intervals)
    return [
        say("Coverage:"),
        say("  Earliest ZXID: {zxid}", zxid=hex_zxid(first)),
        say("  Latest ZXID: {zxid}", zxid=hex_zxid(last)),
        *(say("  Can be restored to: {interval}", interval=say.sentence(str(interval))) for interval in intervals),
        say("  Logs: {state}", state=_logs(say, checked)),
        "",
    ]


def _logs(say: Translation, checked: JudgedBackup) -> str:
    if not checked.verified.old_hole:
        return f"{GOOD} {say('no gaps')}"
    if any(finding.code == "lost-transactions" for finding in checked.findings):
        return f"{FAIR} {say('a gap in an older part')}"
    return f"{FAIR} {say('the snapshot that an older part needs is lost')}"


def _proof(say: Translation, checked: JudgedBackup) -> list[str]:
    found = checked.verified
    weaker = [f"  - {FAIR} {say.sentence(label)}" for label in found.labels]
    if not found.transactions:
        return weaker
    transactions, digests = say.plural(found.transactions, "transaction"), say.plural(found.digests_compared, "digest")
    replayed = say("  - Replayed: {transactions}, {digests} compared", transactions=transactions, digests=digests)
    return [replayed, *weaker]


def verify_document(view: BundleView, checked: JudgedBackup, repairs: list[str]) -> dict[str, Any]:
    info, found = view.info, checked.verified
    kept = len(info.files.snapshots) + len(info.files.txnlogs)
    return {
        "backup_id": view.name,
        "backup_dir": str(view.path),
        "backup_timestamp": info.backup_timestamp,
        "backup_zxid": msgspec.to_builtins(info.backup_zxid),
        "level": checked.level,
        "status": checked.condition.value,
        "quality_score": checked.score,
        "restorable": checked.restorable,
        "unproven_end": checked.unproven_end,
        "found_before": None if checked.deeper is None else msgspec.to_builtins(checked.deeper),
        "files": {
            "snapshots": [_entry(e.name, e.zxid, e.size, checked.findings) for e in info.files.snapshots],
            "txnlogs": [_log_entry(e, checked.findings) for e in info.files.txnlogs],
        },
        "validation": {
            "enabled": found.reads_data,
            "total_files": kept + checked.dropped,
            "valid_files": max(kept - found.damaged_files, 0),
            "corrupted_files": checked.damaged_files,
            "repaired_files": checked.repaired_files,
            "unrecoverable_files": checked.unrecoverable_files,
        },
        "coverage": [_interval(i) for intervals in found.reachable.values() for i in intervals],
        "lost": [{"from": hex_zxid(first), "to": hex_zxid(last)} for first, last in found.lost],
        "transactions": found.transactions,
        "digests_compared": found.digests_compared,
        "labels": list(found.labels),
        "findings": msgspec.to_builtins(checked.findings),
        "repairs": repairs,
    }


def _entry(name: str, zxid: str, size_bytes: int, findings: tuple[Finding, ...]) -> dict[str, Any]:
    wrong = _about(name, findings)
    status = "valid" if wrong is None or wrong.severity is not Severity.DAMAGE else wrong.code
    return {"name": name, "zxid": zxid, "size": size_bytes, "status": status}


def _log_entry(entry: LogEntry, findings: tuple[Finding, ...]) -> dict[str, Any]:
    common = _entry(entry.name, entry.start_zxid, entry.size, findings)
    del common["zxid"]
    return {
        **common,
        "start_zxid": entry.start_zxid,
        "end_zxid": entry.end_zxid,
        "transaction_count": entry.transaction_count,
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "first_zxid": hex_zxid(interval.first.zxid),
        "last_zxid": hex_zxid(interval.last.zxid),
        "proof": interval.proof.value,
        "end_is_open": interval.end_is_open,
    }


def verify(run: CommandRun) -> CommandAnswer:
    started = run.world.monotonic()
    view = BundleView(run.required(BACKUP_DIR, "--backup-dir").absolute())
    fixed = fix(view, run) if run[FIX] else FixedBundle(view)
    checked = _checked(run, fixed)
    code = 10 if fixed.lost else checked.exit_code or (2 if fixed.repaired or fixed.dropped else 0)
    samples = verify_samples(
        fixed.view.info.zookeeper.host, took_s=run.took_s(started), ended_s=run.clock().timestamp(),
        valid=checked.verified.objects - checked.verified.damaged_files, damaged=checked.damaged_files,
        repaired=fixed.repaired, whole=checked.restorable and not checked.verified.failed,
    )  # fmt: skip
    messages = list(fixed.messages)
    document = {**verify_document(fixed.view, checked, messages), "exit_code": code}
    return CommandAnswer(document, lambda look: verify_text(fixed.view, checked, messages, look), code, samples)


def _checked(run: CommandRun, fixed: FixedBundle) -> JudgedBackup:
    level = Level(run[LEVEL])
    with ExitStack() as stack:
        boot, scratch = None, None
        if level is Level.BOOT:
            from logkeep.embedded.zookeeper_boot import boot_of  # noqa: PLC0415  brings Spark's jars with it

            boot = boot_of(fixed.view.info.zookeeper.version, run.cache)
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zkbackup-boot-"))) / "data"
        return check_bundle(
            fixed.view, level, run, boot=boot, scratch=scratch, repaired=fixed.repaired,
            changed=bool(fixed.repaired or fixed.dropped),
        )  # fmt: skip
