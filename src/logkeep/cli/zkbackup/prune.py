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
from logkeep.cli.terminal.boxes import CONDITION_WORDS, GOOD, SIGNS, branches, columns, fit_terminal, title
from logkeep.cli.terminal.messages import Translation, words
from logkeep.cli.terminal.text import TerminalStyle, size
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

    def reasons(self, name: str) -> Sequence[str]:
        return next(v.reasons for v in self.verdicts if v.name == name)


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
            run.console.show(fit_terminal(_plan_lines(words(run.console.err_look), plan), run.console.err_look))
        run.confirm(_question(words(run.console.err_look), plan))
    for one in going:
        _delete(one, plan)
    for rest in plan.left_over:
        _log.info("removed the leftovers of a killed run", extra={"directory": str(rest)})
        _remove(rest, plan)
    return CommandAnswer(_document(plan, dry_run=False), lambda look: _text(plan, look), 2 if plan.failed else 0)


def _question(say: Translation, plan: _Plan) -> str:
    rest = ", ".join(path.name for path in plan.left_over)
    backups = say.plural(len(plan.of(Fate.DELETE)), "backup")
    if rest:
        return say(
            "delete {backups} of {base} and the leftovers of killed runs there ({rest})?",
            backups=backups,
            base=plan.base,
            rest=rest,
        )
    return say("delete {backups} of {base}?", backups=backups, base=plan.base)


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
    say = words(look)
    lines = _plan_lines(say, plan)
    skipped = plan.of(Fate.SKIP)
    if dry_run:
        lines += [say("Nothing was deleted: this was a dry run.")]
        return fit_terminal(lines, look)
    done = [f"  {GOOD} {name}" for name in plan.deleted]
    done += [f"  ⏭️ {one.name} ({say('skipped: ')}{say(CONDITION_WORDS[one.condition])})" for one in skipped]
    done += [f"  {SIGNS[Condition.DAMAGED]} {name}: {say.sentence(why)}" for name, why in plan.failed.items()]
    freed = sum(plan.bundles[name].stored_bytes for name in plan.deleted)
    lines += [*([say("Deleting..."), *done, ""] if done else []), say("Done.")]
    lines += [say("  Deleted: {backups}", backups=say.plural(len(plan.deleted), "backup"))]
    lines += [say("  Skipped: {backups}", backups=say.plural(len(skipped), "backup"))]
    lines += [say("  Freed: {size}", size=size(freed)), *_unknown(say, skipped)]
    return fit_terminal(lines, look)


def _unknown(say: Translation, skipped: Sequence[ListedBundle]) -> list[str]:
    """How to verify the backups that never were: until then they are always kept."""
    unknown = [one for one in skipped if one.condition is Condition.UNVERIFIED]
    command = "zkbackup verify --backup-dir"
    never = say("never verified")
    return [f"  {say(one.problem) if one.problem else never}: {command} {shell_word(one.directory)}" for one in unknown]


def _plan_lines(say: Translation, plan: _Plan) -> list[str]:
    eligible, beyond = plan.of(Fate.DELETE, Fate.SKIP), plan.of(Fate.DELETE, Fate.SKIP, Fate.PROTECTED)
    lines = [*title(say("Prune old backups")), say("Backup directory: {base}", base=plan.base)]
    lines += [say("Policy: {policy}", policy=_policy(say, plan.rules)), "", say("Found:")]
    lines += [say("  Backups: {count}", count=len(plan.bundles))]
    lines += [say("  Beyond the limits of age or count: {count}", count=len(beyond))]
    lines += [say("  Protected (newest good ones): {count}", count=len(plan.of(Fate.PROTECTED)))]
    lines += [say("  To delete: {count}", count=len(plan.of(Fate.DELETE))), ""]
    if eligible:
        lines += [say("To delete:"), *branches(columns([_row(say, one, plan) for one in eligible])), ""]
        lines += [say("Will free: {size}", size=size(sum(one.stored_bytes for one in plan.of(Fate.DELETE)))), ""]
    if plan.left_over:
        lines += [say("To remove, left by killed runs:"), *branches([path.name for path in plan.left_over]), ""]
    return lines


def _policy(say: Translation, rules: BundleRetention) -> str:
    days = say.plural(rules.keep_days, "day")
    age = say("keep {days}", days=days) if rules.keep_days else say("keep any age")
    most = say(", at most {count}", count=rules.keep_count) if rules.keep_count else ""
    return age + most + say(", at least {count}", count=rules.keep_min_count)


def _row(say: Translation, one: ListedBundle, plan: _Plan) -> tuple[str, str, str, str]:
    age = say("{days} old", days=say.plural((plan.now - one.taken).days, "day"))
    skipped = say("{status} (skipped)", status=say(CONDITION_WORDS[one.condition]))
    why = skipped if one in plan.of(Fate.SKIP) else ", ".join(map(say.sentence, plan.reasons(one.name)))
    return one.name, age, size(one.stored_bytes), f"{SIGNS[one.condition]} {why}"


COMMAND = ZkCommand(prune, own=_OPTIONS, exits=(0, 1, 2, 3, 40, 52, 130, 143))
