"""`zkbackup backup`: copy one server's files while it runs, check the copy, and report how good it is."""

from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, condition_word, finding_lines, fit_terminal
from logkeep.cli.terminal.messages import Translation, message, words
from logkeep.cli.terminal.text import TerminalStyle, count, duration, size
from logkeep.cli.zkbackup.claims import claims, document_bytes
from logkeep.cli.zkbackup.command import CommandRun
from logkeep.cli.zkbackup.metrics import backup_samples
from logkeep.cli.zkbackup.options import (
    AUTO_REPAIR,
    BACKUP_ID,
    COMPRESSION,
    COMPRESSION_LEVEL,
    CONCURRENT_COPIES,
    CONFIG_DIR,
    COPY_BUFFER_SIZE,
    DATA_DIR,
    HOST,
    INCLUDE_CONFIG,
    INCLUDE_SECRETS,
    LOG_DIR,
    MAX_RECORD_SIZE,
    OUTPUT_DIR,
    TIMEOUT,
    VERIFY,
)
from logkeep.cli.zkbackup.verification.run import check_bundle
from logkeep.engine.threads import ThreadedEngine
from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.segments import Codec
from logkeep.model.shell_words import shell_word
from logkeep.repository.object_writer import DEFAULT_LEVEL
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up, check_apart
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.model.sink import Gathered
from logkeep.zookeeper.server.client import server_state
from logkeep.zookeeper.server.four_letter import four_letter
from logkeep.zookeeper.verify.recorded_losses import is_of_the_backup
from logkeep.zookeeper.verify.run import Level
from logkeep.zookeeper.verify.verdict import JudgedBackup

_OUTCOMES = {
    0: (GOOD, message("Backup completed")),
    2: (FAIR, message("Backup completed, with warnings")),
    10: (BAD, message("Backup written, but a file in it is damaged")),
    21: (BAD, message("Backup written, but transactions are lost")),
}
_NOT_RESTORABLE = BAD, message("Backup written, but it cannot be restored")
_SECRETS = message("keytabs are never copied; key stores, private keys and passwords only with --include-secrets")


def backup_text(
    bundle: Path,
    done: ZooKeeperBackupDone,
    checked: JudgedBackup,
    took_s: float,
    code: int,
    look: TerminalStyle,
    *,
    with_config: bool,
) -> str:
    """`with_config`: the user asked for the server's configuration too."""
    say, gathered = words(look), done.gathered
    new = checked.new_to(gathered.findings)
    status = condition_word(
        say, checked.condition, unproven_end=checked.unproven_end, read_back=checked.verified.reads_data
    )
    quality = say("quality {score}/100 (level {level})", score=checked.score, level=checked.level)
    sign, outcome = _NOT_RESTORABLE if code == 10 and not checked.restorable else _OUTCOMES[code]
    lines = [
        f"{sign} {say(outcome)}: {done.name}",
        "",
        say.labelled("Directory", str(bundle)),
        *_facts(say, gathered, took_s),
        say.labelled("Status", f"{status}, {quality}"),
        *_configuration(say, gathered, with_config),
        *finding_lines(say, [*gathered.findings, *(f for f in new if not is_of_the_backup(f))]),
        "",
        say("Next steps:"),
        f"  zkbackup verify --backup-dir {shell_word(bundle)}",
        f"  zkbackup info {shell_word(done.name)} --backup-base-dir {shell_word(bundle.parent)}",
    ]
    return fit_terminal(lines, look)


def _facts(say: Translation, gathered: Gathered, took_s: float) -> list[str]:
    member = gathered.members[0]
    stored = [*(placed.stored for placed in gathered.snapshots), *(placed.stored for placed in gathered.logs)]
    plain, kept = sum(s.plain_bytes for s in stored), sum(s.size_bytes for s in stored)
    transactions = sum(placed.kept.records for placed in gathered.logs)
    answered = say("{version} ({role}) at {host}", version=member.version, role=member.role, host=member.host)
    server = answered if member.version else say("no answer from {host}", host=member.host)
    logs, rounds = say.plural(transactions, "transaction"), say.plural(gathered.rounds, "round")
    schemes = ", ".join(gathered.schemes) or say("none seen")
    return [
        say.labelled("ZXID", f"{hex_zxid(gathered.backup_zxid)} ({gathered.backup_zxid})"),
        say.labelled("ZooKeeper", server),
        say.labelled("Snapshots", str(len(gathered.snapshots))),
        say.labelled("Logs", say("{logs} with {transactions}", logs=len(gathered.logs), transactions=logs)),
        say.labelled("Size", say("{plain}, stored {stored}", plain=size(plain), stored=size(kept))),
        say.labelled("Took", say("{time} in {rounds}", time=duration(took_s), rounds=rounds)),
        say.labelled("Schemes", say("{schemes} (in ACLs)", schemes=schemes)),
    ]


def _configuration(say: Translation, gathered: Gathered, wanted: bool) -> list[str]:
    if not wanted:
        return [say.labelled("Config", say("not copied; --include-config copies zoo.cfg, myid and similar files"))]
    files = say.plural(len(gathered.config), "file")
    redacted = count(sum(file.redacted for file in gathered.config))
    kept = say("{files} copied, passwords replaced in {redacted}", files=files, redacted=redacted)
    left = [say("  left out: {line}", line=say.sentence(line)) for line in gathered.left_out]
    secrets = say("            back up secrets yourself: {secrets}", secrets=say(_SECRETS))
    return [say.labelled("Config", kept), *left, secrets]


_MEMBER = "server"


def backup(run: CommandRun) -> CommandAnswer:
    started = run.world.monotonic()
    output = run.required(OUTPUT_DIR, "--output-dir").absolute()
    options = _options(run)
    check_apart(output.as_uri(), options.members[0])  # before anything is created there
    level = run[COMPRESSION_LEVEL] or DEFAULT_LEVEL
    codec = Codec(run[COMPRESSION])
    with new_bundle(output, run[BACKUP_ID], clock=run.clock, tokens=run.token, codec=codec, level=level) as sink:
        done = back_up(options, sink, _rounds(run), lambda host, word: four_letter(host, word, run[TIMEOUT]))
    checked = _checked(run, sink.path)
    return _answer(run, sink.path, done, checked, run.took_s(started))


def _options(run: CommandRun) -> ZooKeeperBackupOptions:
    data_dir = run.required(DATA_DIR, "--zk-data-dir").absolute()
    place = MemberPlace(_MEMBER, data_dir, (run[LOG_DIR] or data_dir).absolute(), run[HOST])
    config_dir = run[CONFIG_DIR]
    if config_dir is not None and not config_dir.is_dir():
        raise UsageError(
            message("there is no such directory"),
            subject=f"--zk-conf-dir {config_dir}",
            remedy=message("name the directory of zoo.cfg"),
        )
    return ZooKeeperBackupOptions(
        members=(place,),
        include_config=run[INCLUDE_CONFIG] or run[INCLUDE_SECRETS],
        include_secrets=run[INCLUDE_SECRETS],
        config_dirs=(config_dir.absolute(),) if config_dir is not None else (),
    )


def _rounds(run: CommandRun) -> RoundSettings:
    engine = ThreadedEngine(run[CONCURRENT_COPIES], sink=run.progress())
    return RoundSettings(
        engine_for=lambda _bytes: engine,
        ask=lambda host: server_state(host, run[TIMEOUT]),
        largest_record=run[MAX_RECORD_SIZE],
        chunk_bytes=run[COPY_BUFFER_SIZE],
    )


def _checked(run: CommandRun, bundle: Path) -> JudgedBackup:
    """Without --verify only the documents are checked: whether the files that they name exist and can be restored."""
    level = Level.DATA if run[VERIFY] else Level.FILES
    return check_bundle(BundleView(bundle), level, run)


def _answer(
    run: CommandRun, bundle: Path, done: ZooKeeperBackupDone, checked: JudgedBackup, took_s: float
) -> CommandAnswer:
    known = claims(bundle)
    code = exit_code(done, checked, auto_repair=run[AUTO_REPAIR])
    samples = backup_samples(
        run[HOST],
        took_s=took_s,
        ended_s=run.clock().timestamp(),
        size_bytes=known.statistics.total_size,
        files=len(known.files.snapshots) + len(known.files.txnlogs),
        damaged=known.validation.corrupted_files,
        code=code,
        restorable=checked.restorable,
    )
    document = _document(bundle, checked, code)
    kept = run[INCLUDE_CONFIG] or run[INCLUDE_SECRETS]
    text = partial(backup_text, bundle, done, checked, took_s, code, with_config=kept)
    return CommandAnswer(document, text, code, samples)


def exit_code(done: ZooKeeperBackupDone, checked: JudgedBackup, *, auto_repair: bool) -> int:
    """Lost transactions take precedence over a failed check, and that over a warning."""
    codes = {finding.code for finding in done.findings}
    if done.exit_code == 21:
        return 21
    if checked.verified.failed or checked.condition is Condition.DAMAGED:
        return 10
    if checked.verified.lacks:
        return 21
    return done.exit_code or checked.exit_code or (2 if "active-tail" in codes and not auto_repair else 0)


def _document(bundle: Path, checked: JudgedBackup, code: int) -> dict[str, Any]:
    """The backup's own document, with its directory and the result of the check."""
    whole: dict[str, Any] = msgspec.json.decode(document_bytes(bundle))
    return {
        "backup_dir": str(bundle),
        **whole,
        "status": checked.condition.value,
        "quality_score": checked.score,
        "exit_code": code,
    }
