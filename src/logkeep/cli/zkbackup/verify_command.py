"""`zkbackup verify`: whether a backup can be restored, as deep as is asked for; `--fix` mends what can be mended."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from logkeep.cli.zkbackup.checking import check_bundle
from logkeep.cli.zkbackup.fixing import Fixed, fix
from logkeep.cli.zkbackup.frame import CommandAnswer, CommandJob, CommandRun
from logkeep.cli.zkbackup.measures import verify_samples
from logkeep.cli.zkbackup.options import BACKUP_DIR, FIX, FORMAT, LEVEL, METRICS_FILE, VALIDATION_TIMEOUT
from logkeep.cli.zkbackup.verify_text import verify_document, verify_text
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.verify.run import Level
from logkeep.zookeeper.verify.verdict import Judged

HELP = """Whether every file is there, every byte is what was written, no transaction is missing, and whether the tree
that they lead to is the one the server had. The verdict is stored with the backup; `zkbackup list` shows it."""
OPTIONS = (BACKUP_DIR, LEVEL, FIX, FORMAT, METRICS_FILE, VALIDATION_TIMEOUT)
EXITS = (0, 1, 2, 10, 40, 130, 143)


def verify(run: CommandRun) -> CommandAnswer:
    started = run.world.monotonic()
    view = BundleView(run.needed(BACKUP_DIR, "--backup-dir").absolute())
    fixed = fix(view, run) if run[FIX] else Fixed(view)
    checked = _checked(run, fixed)
    code = 10 if fixed.lost else checked.exit_code or (2 if fixed.repaired or fixed.dropped else 0)
    samples = verify_samples(
        fixed.view.info.zookeeper.host, took_s=run.took_s(started), ended_s=run.clock().timestamp(),
        valid=checked.verified.objects - checked.verified.damaged_files, damaged=checked.damaged_files,
        repaired=fixed.repaired, whole=checked.restorable and not checked.verified.failed,
    )  # fmt: skip
    told = list(fixed.told)
    document = {**verify_document(fixed.view, checked, told), "exit_code": code}
    return CommandAnswer(document, lambda look: verify_text(fixed.view, checked, told, look), code, samples)


def _checked(run: CommandRun, fixed: Fixed) -> Judged:
    level = Level(run[LEVEL])
    with ExitStack() as stack:
        boot, scratch = None, None
        if level is Level.BOOT:
            from logkeep.embedded.booting import boot_of  # noqa: PLC0415  brings Spark's jars with it

            boot = boot_of(fixed.view.info.zookeeper.version, run.world.cache)
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zkbackup-boot-"))) / "data"
        return check_bundle(
            fixed.view, level, run, VALIDATION_TIMEOUT, boot=boot, scratch=scratch, repaired=fixed.repaired,
            mended=bool(fixed.repaired or fixed.dropped),
        )  # fmt: skip


JOB = CommandJob("verify", verify)
