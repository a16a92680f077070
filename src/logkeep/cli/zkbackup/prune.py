"""`zkbackup prune`: delete backups that are no longer needed, and report why each is kept or deleted.

A backup is first renamed to a name that no command reads, then deleted. After an interruption it is no longer a backup,
and the next prune removes the rest of it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import GOOD, SIGNS, branches, columns, fit_terminal, title
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.zkbackup.bundles import ListedBundle, list_bundles
from logkeep.cli.zkbackup.command import CommandRun, ZkCommand
from logkeep.cli.zkbackup.leftovers import DELETING, find_leftovers, remove_bundle
from logkeep.cli.zkbackup.options import (
    BASE_DIR,
    DELETE_DAMAGED,
    DRY_RUN,
    FORCE,
    FORMAT,
    KEEP_COUNT,
    KEEP_DAYS,
    KEEP_MIN_COUNT,
    PRUNE_CONFIRMATION,
)
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.bundle.retention import AgedBundle, BundleFate, BundleRetention, Fate, judge
from logkeep.zookeeper.model.condition import Condition

_OPTIONS = (BASE_DIR, KEEP_DAYS, KEEP_COUNT, KEEP_MIN_COUNT, DELETE_DAMAGED, DRY_RUN, FORCE, FORMAT)

_log = logging.getLogger(__name__)


@dataclass
class _Plan:
    """What is decided for each backup, and later what was done."""

    base: Path
    rules: BundleRetention
    now: datetime
    bundles: dict[str, ListedBundle]
    verdicts: Sequence[BundleFate]
    left_over: tuple[Path, ...]
    deleted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def of(self, *fates: Fate) -> list[ListedBundle]:
        return [self.bundles[v.name] for v in self.verdicts if v.fate in fates]

    def reasons(self, name: str) -> str:
        return ", ".join(next(v.reasons for v in self.verdicts if v.name == name))


def prune(run: CommandRun) -> CommandAnswer:
    """Delete backups that are no longer needed.

    The newest --keep-min-count good backups are always kept. Of the others, those older than --keep-days are deleted,
    and those beyond the newest --keep-count. Damaged ones are skipped unless --delete-damaged is given.
    """
    plan = _plan(run)
    going = plan.of(Fate.DELETE)
    if run[DRY_RUN]:
        return CommandAnswer(_document(plan, dry_run=True), lambda look: _text(plan, look, dry_run=True))
    if (going or plan.left_over) and not run[FORCE] and run[PRUNE_CONFIRMATION]:
        if run.console.interactive:
            run.console.show(fit_terminal(_plan_lines(plan), run.console.err_look))
        run.confirm(_question(plan))
    for one in going:
        _delete(one, plan)
    for rest in plan.left_over:
        _log.info("removed the leftovers of a killed run", extra={"directory": str(rest)})
        _remove(rest, plan)
    return CommandAnswer(_document(plan, dry_run=False), lambda look: _text(plan, look), 2 if plan.failed else 0)


def _question(plan: _Plan) -> str:
    rest = [path.name for path in plan.left_over]
    also = f" and the leftovers of killed runs there ({', '.join(rest)})" if rest else ""
    return f"delete {plural(len(plan.of(Fate.DELETE)), 'backup')} of {plan.base}{also}?"


def _plan(run: CommandRun) -> _Plan:
    base, now = run[BASE_DIR].absolute(), run.clock()
    rules = BundleRetention(
        keep_days=run[KEEP_DAYS], keep_count=run[KEEP_COUNT], keep_min_count=run[KEEP_MIN_COUNT],
        delete_damaged=run[DELETE_DAMAGED],
    )  # fmt: skip
    bundles = {one.name: one for one in list_bundles(base)}
    aged = [AgedBundle(name=one.name, taken=one.taken, condition=one.condition) for one in bundles.values()]
    return _Plan(base, rules, now, bundles, judge(aged, rules, now), tuple(find_leftovers(base, now)))


def _delete(one: ListedBundle, plan: _Plan) -> None:
    aside = one.directory.with_name(f"{DELETING}{one.name}")
    try:
        one.directory.rename(aside)
    except OSError as error:
        plan.failed[one.name] = (error.strerror or "it cannot be removed").lower()
        return
    plan.deleted.append(one.name)
    _remove(aside, plan)


def _remove(directory: Path, plan: _Plan) -> None:
    try:
        remove_bundle(directory)
    except OSError as error:
        plan.failed[directory.name] = (error.strerror or "it cannot be removed").lower()


def _document(plan: _Plan, *, dry_run: bool) -> dict[str, Any]:
    freed = plan.of(Fate.DELETE) if dry_run else [plan.bundles[name] for name in plan.deleted]
    return {
        "backup_base_dir": str(plan.base),
        "policy": {
            "keep_days": plan.rules.keep_days,
            "keep_count": plan.rules.keep_count,
            "keep_min_count": plan.rules.keep_min_count,
            "delete_damaged": plan.rules.delete_damaged,
        },
        "total": len(plan.bundles),
        "eligible": len(plan.of(Fate.DELETE, Fate.SKIP, Fate.PROTECTED)),
        "protected": [one.name for one in plan.of(Fate.PROTECTED)],
        "to_delete": [one.name for one in plan.of(Fate.DELETE)],
        "deleted": list(plan.deleted),
        "skipped": [one.name for one in plan.of(Fate.SKIP)],
        "failed": dict(plan.failed),
        "left_over": [path.name for path in plan.left_over],
        "freed_bytes": sum(one.stored_bytes for one in freed),
        "backups": [
            {"backup_id": v.name, "verdict": v.fate.value, "reasons": list(v.reasons)} for v in plan.verdicts
        ],
        "dry_run": dry_run,
    }  # fmt: skip


def _text(plan: _Plan, look: TerminalStyle, *, dry_run: bool = False) -> str:
    lines = _plan_lines(plan)
    skipped = plan.of(Fate.SKIP)
    if dry_run:
        lines += ["Nothing was deleted: this was a dry run."]
        return fit_terminal(lines, look)
    done = [f"  {GOOD} {name}" for name in plan.deleted]
    done += [f"  ⏭️ {one.name} (skipped: {one.condition})" for one in skipped]
    done += [f"  {SIGNS[Condition.DAMAGED]} {name}: {why}" for name, why in plan.failed.items()]
    freed = sum(plan.bundles[name].stored_bytes for name in plan.deleted)
    lines += [*(["Deleting...", *done, ""] if done else []), "Done."]
    lines += [f"  Deleted: {plural(len(plan.deleted), 'backup')}", f"  Skipped: {plural(len(skipped), 'backup')}"]
    lines += [f"  Freed: {size(freed)}", *_unknown(skipped)]
    return fit_terminal(lines, look)


def _unknown(skipped: Sequence[ListedBundle]) -> list[str]:
    """How to verify the backups that never were: until then they are always kept."""
    unknown = [one for one in skipped if one.condition is Condition.UNVERIFIED]
    command = "zkbackup verify --backup-dir"
    return [f"  {one.problem or 'never verified'}: {command} {shell_word(one.directory)}" for one in unknown]


def _plan_lines(plan: _Plan) -> list[str]:
    rules, eligible = plan.rules, plan.of(Fate.DELETE, Fate.SKIP)
    most = f", at most {rules.keep_count}" if rules.keep_count else ""
    age = f"keep {plural(rules.keep_days, 'day')}" if rules.keep_days else "keep any age"
    lines = [*title("Prune old backups"), f"Backup directory: {plan.base}"]
    lines += [f"Policy: {age}{most}, at least {rules.keep_min_count}", "", "Found:", f"  Backups: {len(plan.bundles)}"]
    lines += [f"  Beyond the limits of age or count: {len(plan.of(Fate.DELETE, Fate.SKIP, Fate.PROTECTED))}"]
    lines += [f"  Protected (newest good ones): {len(plan.of(Fate.PROTECTED))}"]
    lines += [f"  To delete: {len(plan.of(Fate.DELETE))}", ""]
    if eligible:
        lines += ["To delete:", *branches(columns([_row(one, plan) for one in eligible])), ""]
        lines += [f"Will free: {size(sum(one.stored_bytes for one in plan.of(Fate.DELETE)))}", ""]
    if plan.left_over:
        lines += ["To remove, left by killed runs:", *branches([path.name for path in plan.left_over]), ""]
    return lines


def _row(one: ListedBundle, plan: _Plan) -> tuple[str, str, str, str]:
    days = (plan.now - one.taken).days
    skipped = f" {one.condition} (skipped)" if one in plan.of(Fate.SKIP) else f" {plan.reasons(one.name)}"
    return one.name, f"{plural(days, 'day')} old", size(one.stored_bytes), SIGNS[one.condition] + skipped


COMMAND = ZkCommand(prune, own=_OPTIONS, exits=(0, 1, 2, 3, 40, 52, 130, 143))
