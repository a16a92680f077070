"""`logkeep zookeeper restore survey`: the first of three steps that restore an ensemble on several hosts."""

import os
import re
import socket
from pathlib import Path

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.zookeeper.members import given_members, name_of
from logkeep.cli.verbs.zookeeper.restore.declarations import SURVEY
from logkeep.config.options import SURVEY_TO
from logkeep.errors import Damaged, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Rfc3339
from logkeep.zookeeper.restore.ensemble.documents import DocumentT, MemberSurvey, encoded, read_document
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
    """No transaction in its files, or reported by a running server, is later."""
    epochs: tuple[int, ...]
    """From its epoch files; none for a standalone or new server."""
    running: tuple[str, ...]
    """Processes that use the directories: no plan is made from this survey then."""
    unchecked: tuple[str, ...]


class SurveyReport(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    taken: Rfc3339
    file: str
    members: tuple[SurveyedMember, ...]


def _text(report: SurveyReport, look: TerminalStyle) -> str:
    lines = list[str]()
    for one in report.members:
        held = f"{plural(one.snapshots, 'snapshot')} and {plural(one.logs, 'log')}, up to {one.highest_zxid}"
        epochs = f", epoch {max(one.epochs)}" if one.epochs else ""
        lines.append(look.line(f"{one.member}: {one.data_dir} holds {held}{epochs}"))
        lines += [look.prose(f"WARNING {who}: stop it and survey again", indent=8) for who in one.running]
        lines += [look.prose(f"NOT CHECKED  {what}", indent=13) for what in one.unchecked]
    lines.append(look.line(f"survey of {report.machine} written to {report.file}"))
    lines.append(
        look.prose("next: survey every other host, collect the files, and make one plan from them:  "
                   "logkeep zookeeper restore plan latest *.survey.json --to plan.json")
    )  # fmt: skip
    return "\n".join(lines)


@verb(
    SURVEY,
    report=SurveyReport,
    text=_text,
    exit_code=lambda report: RUNNING if any(one.running for one in report.members) else 0,
)
def survey(run: Run) -> SurveyReport:
    given, machine = given_members(run), socket.gethostname()
    path = run[SURVEY_TO] or Path(f"{re.sub(r'[^A-Za-z0-9._-]', '-', machine) or 'host'}.survey.json")
    targets = [
        (g.name or name_of(g.data_dir), ServerTarget(data_dir=g.data_dir, log_dir=g.log_dir, host=g.host))
        for g in given
    ]
    found = survey_host(targets, machine, run.clock())
    write_document(path, found)
    return SurveyReport(
        machine=machine,
        taken=found.taken,
        file=str(path.absolute()),
        members=tuple(map(_surveyed_member, found.members)),
    )


def _surveyed_member(survey: MemberSurvey) -> SurveyedMember:
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


def write_document(path: Path, document: DocumentT) -> None:
    """Write a survey or plan, completely or not at all. Replaces only an earlier document of its kind.

    Raises UsageError.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if os.path.lexists(path):
            read_document(path, type(document))
        with beside.open("xb") as file:
            file.write(encoded(document))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except Damaged as error:
        remedy = "name another file with --to; this one is left as it is"
        raise UsageError("it already exists, and is something else", subject=str(path), remedy=remedy) from error
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"it cannot be written: {(error.strerror or 'unknown').lower()}"
        raise UsageError(what, subject=str(path), remedy="name a file in a directory that exists with --to") from error
