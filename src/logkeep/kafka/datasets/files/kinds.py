"""What differs between datasets of Avro files and of Parquet files: how one file is made, and where it ends."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, Protocol

from logkeep.errors import UsageError
from logkeep.formats.datasets.avro.container import AvroCodec, sync_marker
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.parquet import ParquetFileWriter, ParquetRecords
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.record.dataset_document import DatasetLog

if TYPE_CHECKING:
    import pyarrow as pa


class RecordFileWriter(Protocol):
    """The bytes of one file, in order."""

    def begin(self) -> bytes: ...
    def add(self, batch: "pa.RecordBatch") -> bytes: ...
    def pieces(self, batch: "pa.RecordBatch") -> Iterator[bytes | memoryview]:
        """The same bytes as `add`, in pieces that are valid until the next call."""

    def end(self) -> bytes: ...


class RecordFileKind(Protocol):
    """Objects of it are picklable and have no state."""

    @property
    def name(self) -> str: ...
    @property
    def ending(self) -> str:
        """The ending of file names, with its dot."""

    def schema(self, options: DatasetOptions) -> str:
        """See `DatasetFormat.schema`."""

    def holds_all(self, options: DatasetOptions) -> bool:
        """See `DatasetFormat.holds_all`."""

    def begin(self, log: DatasetLog, first_offset: int, options: DatasetOptions) -> RecordFileWriter: ...

    def losses(self, writer: RecordFileWriter) -> Mapping[str, int]:
        """What the file cannot hold, by kind."""

    def last_offset(self, file: BinaryIO, log: DatasetLog, first_offset: int) -> int | None:
        """The last offset of a file that Logkeep wrote, read from its end; None if another program wrote it. Raises
        Damaged, UsageError."""

    def has_last(self, file: BinaryIO, log: DatasetLog, record: "pa.RecordBatch") -> bool:
        """Whether a file of ours ends with this record, as far as its schema holds it. Raises Damaged, UsageError."""


class AvroKind:
    name, ending = "avro", ".data"

    def schema(self, options: DatasetOptions) -> str:
        return self._options(options).schema

    def holds_all(self, options: DatasetOptions) -> bool:
        return self._options(options).schema is AvroSchema.FAITHFUL

    def begin(self, log: DatasetLog, first_offset: int, options: DatasetOptions) -> AvroFileWriter:
        return AvroFileWriter(log.topic, log.partition, first_offset, self._options(options))

    def losses(self, writer: RecordFileWriter) -> Mapping[str, int]:
        return {str(kind): count for kind, count in writer.losses.items()} if isinstance(writer, AvroFileWriter) else {}

    def last_offset(self, file: BinaryIO, log: DatasetLog, first_offset: int) -> int | None:
        opened = AvroFile(file)
        is_ours = opened.header.sync == sync_marker(log.topic, log.partition, first_offset)
        return opened.last_offset() if is_ours else None

    def has_last(self, file: BinaryIO, log: DatasetLog, record: "pa.RecordBatch") -> bool:
        opened = AvroFile(file)
        schema = next((each for each in AvroSchema if schema_text(each).encode() == opened.header.schema), None)
        if schema is None:
            raise UsageError("its schema is none that this release writes")
        alone = AvroFile(_alone(AvroFileWriter(log.topic, log.partition, 0, AvroOptions(schema)), record))
        return opened.last_record() == alone.last_record()

    def _options(self, options: DatasetOptions) -> AvroOptions:
        try:
            return AvroOptions(
                AvroSchema(options.schema or AvroSchema.FAITHFUL), AvroCodec(options.codec or AvroCodec.DEFLATE)
            )
        except ValueError as error:
            raise UsageError(str(error)) from error


class ParquetKind:
    name, ending = "parquet", ".parquet"

    def schema(self, options: DatasetOptions) -> str:
        return ""

    def holds_all(self, options: DatasetOptions) -> bool:
        return True

    def begin(self, log: DatasetLog, first_offset: int, options: DatasetOptions) -> ParquetFileWriter:
        return ParquetFileWriter(log.topic, log.partition)

    def losses(self, writer: RecordFileWriter) -> Mapping[str, int]:
        return {}

    def last_offset(self, file: BinaryIO, log: DatasetLog, first_offset: int) -> int | None:
        opened = ParquetRecords(file)
        return opened.last_offset() if opened.first_names() == (log.topic, log.partition, first_offset) else None

    def has_last(self, file: BinaryIO, log: DatasetLog, record: "pa.RecordBatch") -> bool:
        alone = ParquetRecords(_alone(ParquetFileWriter(log.topic, log.partition), record))
        return ParquetRecords(file).last_record() == alone.last_record()


def _alone(writer: RecordFileWriter, record: "pa.RecordBatch") -> BytesIO:
    """A file with this record, to compare it as it is read again: a schema may not hold all of it."""
    return BytesIO(b"".join((writer.begin(), writer.add(record), writer.end())))
