"""`logkeep kafka dataset verify` and `dataset info`: what a dataset has, and whether it is whole."""

from collections.abc import Iterator, Sequence

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.kafka.datasets.existing_dataset import existing_dataset, settle_exchange
from logkeep.cli.verbs.kafka.datasets.upkeep_declarations import INFO, VERIFY
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.config.options import ALL
from logkeep.errors import Locked, ObjectMissing
from logkeep.kafka.dataset_upkeep.contents import DatasetPartition, contents_of
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset
from logkeep.kafka.dataset_upkeep.verify import CheckedPartition, checked_partitions, exit_code, missing_records
from logkeep.model.findings import Finding

_SHOWN = 40


class VerifiedPartition(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    records: int
    first: int | None
    last: int | None
    """Offsets; null if there is no record."""
    stored_bytes: int


class DatasetVerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    format: str
    records: int
    stored_bytes: int
    partitions: tuple[VerifiedPartition, ...]
    findings: tuple[Finding, ...]
    all: bool


def _verified_text(report: DatasetVerifyReport, look: TerminalStyle) -> str:
    counted = f"{plural(report.records, 'record')} in {plural(len(report.partitions), 'partition')}"
    result = "good" if not report.findings else plural(len(report.findings), "finding")
    first = f"{report.url}: {report.format}, {counted}, {size(report.stored_bytes)}: {result}"
    return "\n".join([look.prose(first), *finding_lines(report.findings, look, every=report.all)])


@verb(VERIFY, report=DatasetVerifyReport, text=_verified_text, exit_code=lambda report: exit_code(report.findings))
def verify(run: Run, url: str) -> DatasetVerifyReport:
    settle_exchange(run, url)
    dataset = existing_dataset(run, url)
    try:
        checked = list(_checked(run, dataset))
    except ObjectMissing as error:
        if any(info.name == error.subject for info in dataset.target.names("")):
            raise
        what = "the file was deleted while the dataset was read, by prune, --rewrite or another program"
        raise Locked(what, subject=error.subject, remedy="run verify again") from error
    other = dataset.reader.findings if dataset.reader is not None else ()
    noted = dataset.document.logs if dataset.document is not None else ()
    return DatasetVerifyReport(
        url=dataset.target.url,
        format=dataset.format,
        records=sum(each.records for each in checked),
        stored_bytes=sum(each.size_bytes for each in checked),
        partitions=tuple(map(_verified, checked)),
        findings=(*other, *missing_records(noted, checked), *(f for each in checked for f in each.findings)),
        all=run[ALL],
    )


def _checked(run: Run, dataset: ExistingDataset) -> Iterator[CheckedPartition]:
    progress, total = run.progress(), len(dataset.v1) or len(dataset.reader.partitions if dataset.reader else ())
    progress.start("verify", dataset.records_bytes, total)
    done_bytes = 0
    try:
        for done, each in enumerate(checked_partitions(dataset), 1):
            done_bytes += each.size_bytes
            progress.update(done_bytes, done, 0)
            yield each
    finally:
        progress.finish()


def _verified(each: CheckedPartition) -> VerifiedPartition:
    return VerifiedPartition(
        topic=each.topic,
        partition=each.partition,
        records=each.records,
        first=each.first if each.records else None,
        last=each.last if each.records else None,
        stored_bytes=each.size_bytes,
    )


class DatasetInfoReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    format: str
    tool: str
    """Which tool wrote it, as far as the files say."""
    cluster_id: str
    partitions: tuple[DatasetPartition, ...]
    groups: int
    stored_bytes: int
    all: bool


def _info_text(report: DatasetInfoReport, look: TerminalStyle) -> str:
    topics = len({each.topic for each in report.partitions})
    first = f"{report.url}: {report.format}, {plural(topics, 'topic')}, {plural(report.groups, 'group')}"
    wrote = f"written by {report.tool}" + (f" from cluster {report.cluster_id}" if report.cluster_id else "")
    shown: Sequence[DatasetPartition] = report.partitions if report.all else report.partitions[:_SHOWN]
    rows = [
        (f"{r.topic}/{r.partition}", _offset(r.first), _offset(r.last), count(r.files), size(r.stored_bytes))
        for r in shown
    ]
    lines = [look.prose(f"{first}, {size(report.stored_bytes)}; {wrote}")]
    lines += (
        [look.table(("PARTITION", "FIRST", "LAST", "FILES", "BYTES"), rows, right="FIRST,LAST,FILES,BYTES")]
        if rows
        else []
    )
    if left := len(report.partitions) - len(shown):
        lines.append(look.text(f"… and {plural(left, 'more partition')}; --all shows them"))
    return "\n".join(lines)


def _offset(offset: int | None) -> str:
    return "-" if offset is None else str(offset)


@verb(INFO, report=DatasetInfoReport, text=_info_text)
def info(run: Run, url: str) -> DatasetInfoReport:
    dataset = existing_dataset(run, url)
    partitions = tuple(contents_of(dataset))
    return DatasetInfoReport(
        url=dataset.target.url,
        format=dataset.format,
        tool=dataset.tool,
        cluster_id=dataset.cluster_id,
        partitions=partitions,
        groups=len(dataset.groups()),
        stored_bytes=sum(each.stored_bytes for each in partitions),
        all=run[ALL],
    )
