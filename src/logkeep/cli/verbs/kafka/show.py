"""`logkeep kafka show`: archived records of one topic, read by ranges and decoded for people."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.kafka.declarations import SHOW_RECORDS
from logkeep.cli.verbs.kafka.show_report import ShownHeader, ShownRecord, ShowReport, show_text
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import (
    CONTAINS,
    DECODE,
    ISOLATION,
    LAST_RECORDS,
    MOST_ROWS,
    RECORD_HEADER,
    RECORD_KEY,
    SCHEMA_DIR,
    SCHEMAS_TOPIC,
    SHOW_FROM,
    SINCE,
    UNTIL,
)
from logkeep.config.settings import SettingPlace
from logkeep.errors import UsageError
from logkeep.kafka.registry.decoding import DecodedBytes, DecodeMode, RecordDecoder, as_text
from logkeep.kafka.registry.documents import read_registry, topic_logs
from logkeep.kafka.registry.schema_source import RegistrySchemas, SchemaSource, read_directory
from logkeep.model.plurals import plural
from logkeep.model.shell_words import shell_word
from logkeep.repository.chain.commits import read_chain

if TYPE_CHECKING:
    from logkeep.kafka.importing.reader import DatasetGap
    from logkeep.kafka.record.backup_view import KafkaBackupView
    from logkeep.kafka.scan.find import FoundRecord, FoundRecords, RecordQuestion
    from logkeep.repository.backups.manifest import KnownGap

_SHOWN_GAPS = 5
_WHERE = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})(:(?P<partition>[0-9]{1,9})(:(?P<offset>[0-9]{1,99}))?)?", re.ASCII
)
_LARGEST_OFFSET = 2**63 - 1


@verb(SHOW_RECORDS, report=ShowReport, text=show_text)
def show(run: Run, records: str, backup: str) -> ShowReport:
    from logkeep.kafka.scan.find import find_records, lost_among, why_absent  # noqa: PLC0415 - Arrow, slow to load
    from logkeep.kafka.scan.open_backup import open_backup  # noqa: PLC0415
    from logkeep.kafka.scan.values import ScanCounters  # noqa: PLC0415

    question = _question(run, records)
    directory = run[SCHEMA_DIR]
    schemas = None if directory is None else read_directory(directory)
    dataset: str | None = run[SHOW_FROM]
    if dataset is not None:
        if backup != "latest":
            raise UsageError("--from names a dataset, which has no backups", subject=backup, remedy="leave the id out")
        return _of_dataset(run, question, dataset, schemas)
    counters = ScanCounters()
    with open_backup(chosen_source(run), backup, "show", run.clock, run.token) as view:
        found = find_records(view, question, counters)
        absent = why_absent(view, question, counters) if question.exactly and not found.records else None
        lost = [] if question.exactly else lost_among(view, question, found)
        decoder = RecordDecoder(DecodeMode(run[DECODE]), schemas or _archived(run, view))
        return ShowReport(
            id=view.entry.id,
            source=view.place.source,
            topic=question.topic,
            offset=question.offset if question.exactly else None,
            records=tuple(_shown_record(record, decoder, question.topic) for record in found.records),
            more=found.more,
            searched=found.searched,
            notes=(*_notes(question, found, absent), *_losses(lost)),
            stored_bytes=counters.stored_bytes,
            requests=counters.requests,
        )


def _of_dataset(run: Run, question: "RecordQuestion", url: str, schemas: SchemaSource | None) -> ShowReport:
    from logkeep.cli.verbs.kafka.datasets.import_ import opened_dataset  # noqa: PLC0415 - Arrow, slow to load
    from logkeep.kafka.importing.find_records import find_in_dataset  # noqa: PLC0415
    from logkeep.kafka.importing.recognise import AUTO  # noqa: PLC0415

    reader = opened_dataset(run, url, AUTO)
    found, lost = find_in_dataset(reader, question, url)
    decoder = RecordDecoder(DecodeMode(run[DECODE]), schemas)
    absent = "the dataset has none there" if question.exactly and not found.records else None
    return ShowReport(
        id=None,
        source=reader.label.tool,
        topic=question.topic,
        offset=question.offset if question.exactly else None,
        records=tuple(_shown_record(record, decoder, question.topic) for record in found.records),
        more=found.more,
        searched=found.searched,
        notes=(*_notes(question, found, absent), *_missing(lost, url)),
        stored_bytes=None,
        requests=None,
    )


def _question(run: Run, text: str) -> "RecordQuestion":
    from logkeep.kafka.scan.find import RecordQuestion  # noqa: PLC0415 - Arrow, slow to load
    from logkeep.kafka.scan.search import RecordSearch  # noqa: PLC0415
    from logkeep.kafka.scan.values import ScanIsolation  # noqa: PLC0415

    where = _WHERE.fullmatch(text)
    if where is None:
        raise UsageError(f"{text!r} names no records", remedy="write TOPIC, TOPIC:PARTITION or TOPIC:PARTITION:OFFSET")
    last: int | None = run[LAST_RECORDS]
    given = run.settings.origin(MOST_ROWS).place is not SettingPlace.DEFAULT
    offset = None if where["offset"] is None else int(where["offset"])
    if offset is not None and offset > _LARGEST_OFFSET:
        raise UsageError(f"{offset} is no offset", remedy=f"the largest one that Kafka has is {_LARGEST_OFFSET}")
    if last is not None and (given or offset is not None):
        other = "--limit" if given else "an offset"
        raise UsageError(f"--last and {other} exclude each other", remedy="leave one of them out")
    name, _, value = (run[RECORD_HEADER] or "").partition("=")
    since_ms, until_ms = run[SINCE], run[UNTIL]
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise UsageError("--until is not after --since: no record has such a time", remedy="exchange them")
    search = RecordSearch(
        key=_bytes(run[RECORD_KEY], "--key"),
        contains=_bytes(run[CONTAINS], "--contains"),
        header=name.encode() if run[RECORD_HEADER] is not None else None,
        header_value=_bytes(value, "--header") if "=" in (run[RECORD_HEADER] or "") else None,
    )
    question = RecordQuestion(
        topic=where["topic"],
        partition=None if where["partition"] is None else int(where["partition"]),
        offset=offset,
        since_ms=since_ms,
        until_ms=until_ms,
        isolation=ScanIsolation(run[ISOLATION]),
        search=search,
        limit=last or run[MOST_ROWS],
        last=last is not None,
    )
    alone = not given and search.everything and question.since_ms is None and question.until_ms is None
    return replace(question, exactly=offset is not None and alone)


def _bytes(text: str | None, flag: str) -> bytes | None:
    """Text as it is, or bytes that are written as `hex:…` or `base64:…`."""
    if text is None:
        return None
    try:
        if text.startswith("hex:"):
            return bytes.fromhex(text[4:])
        if text.startswith("base64:"):
            return base64.b64decode(text[7:], validate=True)
    except (ValueError, binascii.Error):
        raise UsageError(f"{text!r} has other characters than its form allows", subject=flag) from None
    return text.encode("utf-8", "surrogateescape")


def _archived(run: Run, view: "KafkaBackupView") -> SchemaSource | None:
    """The registry of the backup; None if it has none, or if no mode needs it."""
    if run[DECODE] in ("text", "hex"):
        return None
    captured = any(each.role == "registry" for each in view.manifest.attachments)
    if not captured and not topic_logs(view.manifest, run[SCHEMAS_TOPIC]):
        return None
    return RegistrySchemas(read_registry(view.place, read_chain(view.place), view.manifest, run[SCHEMAS_TOPIC]))


def _shown_record(record: "FoundRecord", decoder: RecordDecoder, topic: str) -> ShownRecord:
    guids = {name: value for name, value in record.headers if name in (b"__key_schema_id", b"__value_schema_id")}

    def decoded(data: bytes | None, side: str) -> DecodedBytes | None:
        guid = guids.get(f"__{side}_schema_id".encode())
        return None if data is None else decoder.decode(data, guid, f"{topic}-{side}")

    return ShownRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.time_ms,
        append_time=record.append_time,
        key=decoded(record.key, "key"),
        value=decoded(record.value, "value"),
        headers=tuple(
            ShownHeader(name=as_text(name).text or "", value=None if value is None else as_text(value))
            for name, value in record.headers
        ),
    )


def _losses(gaps: "list[KnownGap]") -> "list[str]":
    from logkeep.kafka.scan.plan import loss_text  # noqa: PLC0415 - Arrow, slow to load

    notes = [loss_text(gap, f" of partition {gap.log.partition}") for gap in gaps[:_SHOWN_GAPS]]
    more = len(gaps) - len(notes)
    return [*notes, f"{plural(more, 'gap')} more: `logkeep info` lists them"] if more else notes


def _missing(lost: "Sequence[tuple[int, DatasetGap]]", url: str) -> "list[str]":
    notes = [
        f"offsets {gap.start} to {gap.end - 1} of partition {partition} are not there: {gap.reason}"
        for partition, gap in lost[:_SHOWN_GAPS]
    ]
    more = len(lost) - len(notes)
    verify = f"`logkeep kafka dataset verify {shell_word(url)}` lists them"
    return [*notes, f"{plural(more, 'gap')} more: {verify}"] if more else notes


def _notes(question: "RecordQuestion", found: "FoundRecords", absent: str | None) -> "list[str]":
    notes = []
    if absent is not None:
        notes.append(f"there is no record to show at offset {question.offset}: {absent}")
    if found.hashed_to is not None:
        count = f" if the topic has {plural(found.assumed, 'partition')}" if found.assumed else ""
        if found.searched == (found.hashed_to,):
            notes.append(
                f"searched partition {found.hashed_to} alone, to which Kafka's default partitioner assigns this "
                f"key{count}; `logkeep kafka show {shell_word(f'{question.topic}:PARTITION')}` searches another one"
            )
        else:
            notes.append(
                f"no matching record with this key is in partition {found.hashed_to}, to which Kafka's default "
                f"partitioner assigns it{count}: the others were searched too"
            )
    return notes
