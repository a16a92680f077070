"""`kafka restore --from`: imports a dataset into a scratch repository, which is removed when the command ends."""

from dataclasses import dataclass
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.kafka.copied_report import gap_text
from logkeep.cli.verbs.kafka.datasets.import_ import opened_dataset, partition_counts
from logkeep.cli.wiring import chosen_engine, use_directories
from logkeep.config.options import (
    EXCLUDE,
    IMPORT_FORMAT,
    PARTITION_COUNT,
    REPO,
    RESTORE_FROM,
    RESUME_RESTORE,
    SCRATCH,
    SOURCE,
    TOPICS,
)
from logkeep.errors import UsageError
from logkeep.kafka.importing.run import ImportOptions, KafkaImport
from logkeep.kafka.importing.scratch import scratch_repository
from logkeep.model.findings import Finding, Severity
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.layout import FORMAT

_SOURCE = "imported"
NOT_RESUMED = "delete the topics that it created and run again; or import first, and restore from the repository"


@dataclass(frozen=True)
class ScratchImport:
    """The imported dataset, and what the import reports."""

    place: SourceRef
    findings: tuple[Finding, ...]


def imported(run: Run, url: str, backup: str | None) -> ScratchImport:
    """Import the dataset of `--from`. The repository exists until the command ends."""
    others = [o.spellings()[0].flag for o in (REPO, SOURCE, RESUME_RESTORE) if run.settings.typed(o)]
    if others or backup is not None:
        other = others[0] if others else "an id"
        raise UsageError(f"--from names what is restored, and so does {other}", remedy="leave one of the two out")
    reader = opened_dataset(run, url, run[IMPORT_FORMAT])
    parent: Path = (run[SCRATCH] or run.cache / "scratch").absolute()
    made = scratch_repository(parent, reader.size_bytes, run.clock(), run.token)
    repository = run.world.resources.enter_context(made)
    use_directories(run, Path(repository.store.url.removeprefix("file://")), file=FORMAT)
    place = repository.place(_SOURCE)
    counts = partition_counts(run[PARTITION_COUNT])
    options = ImportOptions(include=run[TOPICS], exclude=run[EXCLUDE], partition_counts=counts)
    task = KafkaImport(place, reader, url, run.clock, run.token)
    done = task.run(options, chosen_engine(run, reader.size_bytes, work="copy"))
    gaps = [
        Finding(code="gap", severity=Severity.WARNING, where=str(g.log), what=f"not in the dataset: {gap_text(g)}")
        for g in done.gaps
    ]
    return ScratchImport(place, (*gaps, *done.findings))


def refuse_without_from(run: Run) -> None:
    """Raise UsageError for options that only `--from` uses."""
    if run[RESTORE_FROM] is None:
        for option in (SCRATCH, IMPORT_FORMAT, PARTITION_COUNT):
            if run.settings.typed(option):
                raise UsageError(f"{option.spellings()[0].flag} is only for --from")
