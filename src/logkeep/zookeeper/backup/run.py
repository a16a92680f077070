"""A ZooKeeper backup as a list of steps: list files, check the history, copy in rounds, report findings, commit.

The sink stores it as a bundle or in a repository. A run that is killed at any point leaves earlier backups unchanged,
and no partial backup.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

from logkeep.errors import ClusterError, UsageError
from logkeep.model.findings import Finding
from logkeep.zookeeper.backup.findings import backup_zxid, exit_code, kept_runs, member_outcome
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.other_members import Runs, other_members_of
from logkeep.zookeeper.backup.recopy import copy_again
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.model.config_files import Configuration, gather_config, usual_places
from logkeep.zookeeper.model.sink import BackupSink, Gathered, MemberText
from logkeep.zookeeper.server.four_letter import ServerState

AskWord = Callable[[str, str], str]
"""Host and four-letter word → the answer. Raises ClusterError."""


@dataclass(frozen=True)
class ZooKeeperBackupOptions:
    """The user's options."""

    members: tuple[MemberPlace, ...]
    new_history: bool = False
    """Begin a new history: the directories do not continue what is archived."""
    include_config: bool = False
    include_secrets: bool = False
    config_dirs: tuple[Path, ...] = ()
    """Directories of configuration files; the usual ones if empty."""
    findings: tuple[Finding, ...] = ()
    """Findings from before the run that the backup reports too."""


@dataclass(frozen=True)
class ZooKeeperBackupDone:
    name: str
    gathered: Gathered
    exit_code: int
    """0: good; 2: no server could be asked, or something was repaired without loss; 21: transactions are lost."""

    @property
    def findings(self) -> Sequence[Finding]:
        return self.gathered.findings


def back_up(
    options: ZooKeeperBackupOptions, sink: BackupSink, rounds: RoundSettings, ask_word: AskWord
) -> ZooKeeperBackupDone:
    """Take a backup. Raises HistoryUnproven, DataDirUnusable, BackupFailed, or what the sink's store raises."""
    _check_names(options)
    for place in options.members:
        check_apart(sink.url, place)
    members = rounds.begin(options.members, sink, new_history=options.new_history)
    try:
        sink.start()
        number = rounds.run(members)
        rounds.keep_damaged(members)
        damaged = () if options.new_history else sink.known.damaged()
        again = copy_again(members, damaged, rounds.engine_for) if damaged else []
    finally:
        for member in members:
            member.open_files.close()
    archived = {} if options.new_history else sink.known.logs
    gathered = replace(_gathered(options, members, archived, number, ask_word), again=again)
    completed = sink.complete(gathered)
    gathered = replace(gathered, findings=[*gathered.findings, *completed.findings])
    return ZooKeeperBackupDone(completed.name, gathered, exit_code(gathered.findings))


def _check_names(options: ZooKeeperBackupOptions) -> None:
    names = [member.name for member in options.members]
    if not names or len(set(names)) != len(names):
        raise UsageError("name every member, each once", subject=", ".join(names))


def check_apart(url: str, place: MemberPlace) -> None:
    """Refuse the server's own directories: the server reads them, and replacing them would replace the backups."""
    address = urlsplit(url)
    output = Path(unquote(address.path)).resolve()
    for directory in (place.data_dir.resolve(), place.log_dir.resolve()):
        if address.scheme == "file" and output.is_relative_to(directory):
            raise UsageError(
                "the backup would be in a directory of the server itself",
                subject=str(output),
                remedy=f"choose one outside of {directory}, on another disk if you can",
            )


def _gathered(
    options: ZooKeeperBackupOptions, members: Sequence[MemberRun], archived: Runs, number: int, ask_word: AskWord
) -> Gathered:
    """`archived`: what earlier backups contain of each member, in the same history."""
    texts = {m.place.name: _text(m.place.host, ask_word) for m in members if m.state is not None}
    for member in members:
        member.voters = voters_in(texts.get(member.place.name, MemberText()).conf, member.state)
    new = {member.place.name: kept_runs(member) for member in members}
    outcomes = [member_outcome(member, other_members_of(member.place.name, (archived, new))) for member in members]
    config = _config(options, members)
    return Gathered(
        history=members[0].history,
        members=[member.member() for member in members],
        snapshots=[placed for member in members for placed in member.bounded_snapshots()],
        logs=[log for each in outcomes for log in each.logs],
        findings=list(dict.fromkeys([*options.findings, *chain.from_iterable(each.findings for each in outcomes)])),
        gaps=[lost for each in outcomes for lost in each.lost],
        damaged=[one for member in members for one in member.damaged],
        schemes=sorted(set(chain.from_iterable(member.schemes for member in members))),
        texts=texts,
        config=config.files,
        left_out=(*config.left_out, *(path for m in members for path in m.files.strays)),
        rounds=number,
        backup_zxid=backup_zxid(members),
    )


def _text(host: str, ask_word: AskWord) -> MemberText:
    """Answers of a server; words that it does not support or allow stay empty."""
    answers = []
    for word in ("mntr", "stat", "conf"):
        try:
            answers.append(ask_word(host, word))
        except ClusterError:
            answers.append("")
    return MemberText(*answers)


def _config(options: ZooKeeperBackupOptions, members: Sequence[MemberRun]) -> Configuration:
    if not options.include_config:
        return Configuration()
    if options.config_dirs:  # `myid` is always beside the data
        places = [*options.config_dirs, *(m.files.snapshot_dir.parent for m in members)]
    else:
        places = [p for m in members for p in usual_places(m.files.snapshot_dir, dict(os.environ))]
    return gather_config(list(dict.fromkeys(places)), include_secrets=options.include_secrets)


_SERVER = re.compile(r"^server\.\d+=(?P<rest>.*)$", re.MULTILINE)


def voters_in(conf: str, state: ServerState | None) -> int | None:
    """Number of voting servers, from `conf` since 3.5: its lines name all members."""
    if state is not None and state.mode == "standalone":
        return 1
    lines = _SERVER.findall(conf)
    return sum(":observer" not in line for line in lines) or None
