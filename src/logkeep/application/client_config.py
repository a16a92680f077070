"""How the programs of applications reach a Kafka cluster: its address, and a file with properties of librdkafka."""

import importlib.util
from pathlib import Path

from logkeep.errors import UsageError


def client_config(bootstrap_servers: str, file: Path | None) -> dict[str, str]:
    """How to reach the cluster. Raises UsageError if a file or the client's package is missing, or the client refuses a
    property of the file."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise UsageError("confluent-kafka is not installed", remedy="pip install 'logkeep[application]'")
    config = {"bootstrap.servers": bootstrap_servers}
    if file is None:
        return config
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read ({error})", subject=str(file)) from error
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    config = {name.strip(): value.strip() for name, _, value in pairs} | config
    _try(config, file)
    return config


def _try(config: dict[str, str], file: Path) -> None:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra, and heavy
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - as above

    try:
        AdminClient(config)
    except KafkaException as error:
        remedy = "it has properties of librdkafka, one name=value per line; Java's properties have other names"
        raise UsageError(f"the client refuses it: {error.args[0].str()}", subject=str(file), remedy=remedy) from error
