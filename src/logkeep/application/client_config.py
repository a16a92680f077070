"""How the programs of applications reach a Kafka cluster: its address, and a file with properties of librdkafka.

Some properties name code that librdkafka loads or runs: then no other user may be able to change the file. A file with
a secret may be readable by its owner alone. Both are facts of the open file.
"""

import importlib.util
import re
from pathlib import Path
from typing import Final

from logkeep import secret_reading
from logkeep.errors import UsageError
from logkeep.model.process_memory import hide_memory

_CODE: Final = frozenset(
    {"plugin.library.paths", "ssl.engine.location", "ssl.providers", "sasl.kerberos.kinit.cmd"},
)
_SECRET: Final = re.compile(r".*(password|passphrase|secret|key\.pem)|sasl\.oauthbearer\.config")
_LARGEST_BYTES = 1 << 20
_QUIET: Final = {"log_level": "0"}
"""librdkafka writes its own log to the terminal, with words of the broker that control it."""


def client_config(bootstrap_servers: str, file: Path | None) -> dict[str, str]:
    """How to reach the cluster. Raises UsageError if the client's package is missing or refuses a property of the file,
    and ConfigError if the file cannot be read, or others can read its secrets or change what it runs."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise UsageError("confluent-kafka is not installed", remedy="pip install 'logkeep[application]'")
    config = {"bootstrap.servers": bootstrap_servers, **_QUIET}
    if file is None:
        return config
    config = _QUIET | _properties(file) | {"bootstrap.servers": bootstrap_servers}
    _try(config, file)
    return config


def _properties(file: Path) -> dict[str, str]:
    content = secret_reading.read_content(file, private=False, largest_bytes=_LARGEST_BYTES)
    try:
        lines = content.data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise UsageError("the file is not UTF-8 text", subject=str(file)) from error
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if not _CODE.isdisjoint(found):
        secret_reading.refuse_command(content.origin)
    if any(map(_SECRET.fullmatch, found)):
        secret_reading.refuse_readable_by_others(content.mode, file)
        hide_memory()
    return found


def _try(config: dict[str, str], file: Path) -> None:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra, and heavy
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - as above

    try:
        AdminClient(config)
    except KafkaException as error:
        remedy = "it has properties of librdkafka, one name=value per line; Java's properties have other names"
        raise UsageError(f"the client refuses it: {error.args[0].str()}", subject=str(file), remedy=remedy) from error
