"""`logkeep zookeeper restore survey`: the first of three steps by which an ensemble on several hosts is restored."""

import re
import socket
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.zookeeper.members import Given, given_members, name_of
from logkeep.cli.verbs.zookeeper.restore.plan_file import write_document
from logkeep.config.options import SURVEY_TO, ZK_MEMBERS
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.restore.ensemble.documents import MemberSurvey
from logkeep.zookeeper.restore.ensemble.survey import survey_host
from logkeep.zookeeper.restore.values import ServerTarget

RUNNING = 2


class SurveyedMember(msgspec.Struct, frozen=True, kw_only=True):
    member: str
    data_dir: str
    log_dir: str
    snapshots: int
    logs: int
    highest_zxid: str
    """No transaction in its files is later, nor any that a running server has processed."""
    epochs: tuple[int, ...]
    """As its epoch files say; none for a server that stands alone, or is new."""
    running: tuple[str, ...]
    """Who uses the directories: no plan is made of this survey then."""
    unchecked: tuple[str, ...]


class SurveyReport(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    taken: str
    file: str
    members: tuple[SurveyedMember, ...]


def _text(report: SurveyReport, look: TerminalStyle) -> str:
    lines = list[str]()
    for one in report.members:
        held = f"{plural(one.snapshots, 'snapshot')} and {plural(one.logs, 'log')}, up to {one.highest_zxid}"
        epochs = f", epoch {max(one.epochs)}" if one.epochs else ""
        lines.append(look.line(f"{one.member}: {one.data_dir} holds {held}{epochs}"))
        lines += [look.prose(f"WARNING {who}: stop it and survey again", indent=8) for who in one.running]
        lines += [look.line(f"NOT CHECKED  {what}") for what in one.unchecked]
    lines.append(look.line(f"survey of {report.machine} written to {report.file}"))
    lines.append(
        look.prose("next: survey every other host, bring the files together, and make one plan of them:  "
                   "logkeep zookeeper restore plan latest *.survey.json --to plan.json")
    )  # fmt: skip
    return "\n".join(lines)


@verb(
    report=SurveyReport,
    text=_text,
    options=(*ZK_MEMBERS, SURVEY_TO),
    exits=(2, 10, 31),
    exit_code=lambda report: RUNNING if any(one.running for one in report.members) else 0,
    examples=(
        "logkeep zookeeper restore survey --data-dir /var/lib/zookeeper --zk-host localhost:2181",
        "logkeep zookeeper restore survey --data-dir /var/lib/zookeeper --log-dir /var/lib/zklog --to zk1.survey.json",
    ),
)
def survey(run: Run) -> SurveyReport:
    """Write down how far the servers on this host got, for one plan for all members of an ensemble.

    The first of three steps: stop all members, and survey every host; make one plan of all surveys with `restore plan`;
    carry it out on every host with `restore --plan`. Nothing but the survey is written, and no repository is needed. A
    survey of a server that still runs ends with 2: it can be looked at, but no plan is made of it.
    """
    given, machine = given_members(run), socket.gethostname()
    path = run[SURVEY_TO] or Path(f"{re.sub(r'[^A-Za-z0-9._-]', '-', machine) or 'host'}.survey.json")
    found = survey_host([(_named(each), _target(each)) for each in given], machine, run.clock())
    write_document(path, found)
    return SurveyReport(
        machine=machine, taken=found.taken, file=str(path.absolute()), members=tuple(map(_told, found.members))
    )


def _named(given: Given) -> str:
    return given.name or name_of(given.data_dir)


def _target(given: Given) -> ServerTarget:
    return ServerTarget(data_dir=given.data_dir, log_dir=given.log_dir, host=given.host)


def _told(survey: MemberSurvey) -> SurveyedMember:
    return SurveyedMember(
        member=survey.member,
        data_dir=survey.data_dir,
        log_dir=survey.log_dir,
        snapshots=survey.snapshots,
        logs=survey.logs,
        highest_zxid=hex_zxid(survey.highest_zxid),
        epochs=survey.epochs,
        running=survey.running,
        unchecked=survey.unchecked,
    )
