"""`logkeep zookeeper restore plan`: the second of three steps that restore an ensemble on several hosts."""

from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zookeeper.restore.declarations import PLAN
from logkeep.cli.verbs.zookeeper.restore.report import RestoredTree, tree_lines, tree_of_all
from logkeep.cli.verbs.zookeeper.restore.survey import write_document
from logkeep.cli.verbs.zookeeper.restore.verb import asked_moment, passed_over, restore_options
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import (
    PLAN_TO,
)
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.time import Rfc3339
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.owner import this_process
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.restore.ensemble.documents import HostSurvey, MemberSurvey, read_document
from logkeep.zookeeper.restore.ensemble.plan import Agreement, agree
from logkeep.zookeeper.timeline.verified_path import choose


class AgreedMember(msgspec.Struct, frozen=True, kw_only=True):
    member: str
    machine: str
    data_dir: str
    log_dir: str
    snapshots: int
    """Existing ones, which are replaced."""
    logs: int
    highest_zxid: str
    epochs: tuple[int, ...]
    surveyed: Rfc3339


class ZooKeeperPlanReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    tree: RestoredTree
    """What every member gets."""
    members: tuple[AgreedMember, ...]
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    """Checks for running servers that the surveys could not make."""
    refusals: tuple[str, ...]
    """Why no plan is written."""
    refusal_code: int
    file: str | None
    """The file of the plan; null where it is only shown."""


def _text(report: ZooKeeperPlanReport, look: TerminalStyle) -> str:
    members = plural(len(report.members), "member")
    lines = [look.line(f"restore of backup {report.backup} of {report.source}, for {members}")]
    lines += tree_lines(report.tree, look)
    headers = ("MEMBER", "HOST", "DATA DIR", "SNAPSHOTS", "LOGS", "UP TO", "EPOCH", "NEW EPOCH")
    rows = [_cells(one, report.tree) for one in report.members]
    lines.append(look.table(headers, rows, right="SNAPSHOTS,LOGS,UP TO,EPOCH,NEW EPOCH", free="DATA DIR"))
    lines += [look.prose(f"NOT CHECKED  {what}", indent=13) for what in report.unchecked]
    lines += finding_lines(report.findings, look, every=True)
    lines += [look.prose(f"REFUSED {refusal}", indent=len("REFUSED ")) for refusal in report.refusals]
    if report.file is not None:
        lines.append(look.line(f"plan written to {report.file}"))
        lines.append(look.prose("next: carry it out on every host, and start no member until all are restored:  "
                                "logkeep zookeeper restore --plan plan.json --data-dir DIR"))  # fmt: skip
    elif not report.refusals:
        lines.append(look.line("nothing is written: --to plan.json writes the plan"))
    return "\n".join(lines)


def _cells(one: AgreedMember, tree: RestoredTree) -> tuple[str, ...]:
    epoch = str(max(one.epochs)) if one.epochs else "-"
    held = (str(one.snapshots), str(one.logs), one.highest_zxid, epoch)
    return (one.member, one.machine, one.data_dir, *held, str(tree.epoch))


@verb(PLAN, report=ZooKeeperPlanReport, text=_text, exit_code=lambda report: report.refusal_code)
def plan(run: Run, backup: str, surveys: tuple[str, ...]) -> ZooKeeperPlanReport:
    hosts = [read_document(Path(name).expanduser(), HostSurvey) for name in surveys]
    place, target, options = chosen_source(run), asked_moment(run), restore_options(run, (), ensemble=True)
    entry = read_source(place, run.clock()).completed(backup)
    with reading(place, BackupId(entry.id), this_process(run.token()), "restore", run.token) as held:
        view = view_of(place, held)
        chosen = choose(view, target, believe=options.believe, accept_mismatch=bool(options.accept_mismatch))
        agreed = agree(view, chosen.path, chosen.replayed, options, hosts, source=place.source, clock=run.clock)
    path = run[PLAN_TO]
    written = path is not None and not agreed.obstacles
    if path is not None and written:
        write_document(path, agreed.plan)
    file = str(path.absolute()) if path is not None and written else None
    return _report(entry.id, agreed, hosts, passed_over(chosen), file)


def _report(
    backup: int, agreed: Agreement, hosts: list[HostSurvey], damage: tuple[Finding, ...], file: str | None
) -> ZooKeeperPlanReport:
    return ZooKeeperPlanReport(
        source=agreed.plan.source,
        backup=backup,
        tree=tree_of_all(agreed),
        members=tuple(_member(host, member) for host in hosts for member in host.members),
        findings=(*agreed.findings, *damage),
        unchecked=agreed.unchecked,
        refusals=tuple(f"{each}; {each.remedy}" for each in agreed.obstacles),
        refusal_code=agreed.obstacles[0].exit_code if agreed.obstacles else 0,
        file=file,
    )


def _member(host: HostSurvey, survey: MemberSurvey) -> AgreedMember:
    return AgreedMember(
        member=survey.member,
        machine=host.machine,
        data_dir=survey.data_dir,
        log_dir=survey.log_dir,
        snapshots=survey.snapshots,
        logs=survey.logs,
        highest_zxid=hex_zxid(survey.highest_zxid),
        epochs=survey.epochs,
        surveyed=host.taken,
    )
