"""Declarations of `logkeep kafka schemas …`. Their work is loaded when they run."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALL,
    CONFIRM_CLUSTER,
    ENGINE_OPTIONS,
    KAFKA_TARGET,
    LIMIT_DOWNLOAD,
    PROGRESS,
    RECEIPT_OPTIONS,
    REGISTRY_OPTIONS,
    REPLICATION_FACTOR,
    SCHEMAS_CONTEXT,
    SCHEMAS_SAMPLE,
    SCHEMAS_TOPIC,
    SCHEMAS_WAY,
    STORE_OPTIONS,
)


def _backup() -> click.Argument:
    return click.Argument(["backup"], metavar="[ID]", default="latest")


LIST = Declaration(
    """List the archived schemas of a registry: subjects, versions, ids, also deleted ones.

    Needs a backup that holds the registry's topic, or one that was taken with --registry.
    """,
    options=(*STORE_OPTIONS, SCHEMAS_TOPIC, ALL),
    arguments=(_backup(),),
    exits=(10, *STORE_EXITS),
    examples=("logkeep kafka schemas list latest", "logkeep kafka schemas list 20261114020000 --json"),
)

SHOW = Declaration(
    """Show what a schema id means, with its references and the subjects that use it.

    A schema that the registry has deleted for good is shown too, if an archived record of the topic has it. An id may
    mean another schema in another context of the registry: --context names it.
    """,
    options=(*STORE_OPTIONS, SCHEMAS_TOPIC, SCHEMAS_CONTEXT),
    arguments=(
        click.Argument(["backup"], metavar="ID"),
        click.Argument(["schema_id"], metavar="SCHEMA-ID", type=click.IntRange(0)),
    ),
    exits=(10, *STORE_EXITS),
    examples=("logkeep kafka schemas show latest 42", "logkeep kafka schemas show latest 42 --json"),
)

CHECK = Declaration(
    """Check that the archived registry knows every schema id in the archived records.

    Reads keys and values of all topics but internal ones. Each id that is missing is reported with its topic, the
    number of records and its first offset, and the run ends with 10. Ids of topics of which only some records begin
    like those with schemas may be chance: they are reported as possible, and the run ends with 2. Schema ids in headers
    of records are not read.
    """,
    options=(*STORE_OPTIONS, SCHEMAS_TOPIC, SCHEMAS_SAMPLE, *ENGINE_OPTIONS, LIMIT_DOWNLOAD, PROGRESS),
    arguments=(_backup(),),
    exits=(2, 10, *STORE_EXITS),
    examples=("logkeep kafka schemas check latest", "logkeep kafka schemas check latest --sample 1/7"),
)

RESTORE = Declaration(
    """Restore a registry: every id, version and reference as archived, and read back.

    An export of Apicurio's registry is imported by Apicurio's registry, also if the backup has a topic. Otherwise,
    where the backup has the registry's topic and a cluster is named, the topic is restored, record for record. Stop
    the registry before, start it afterwards, and run the command again: it compares what the registry answers.
    Otherwise each schema is registered with its id, in the registry's mode IMPORT; this is refused for an archive with
    rules or metadata of schemas, which only the topic has.

    A registry that is not empty is refused, unless it holds exactly what is archived. One that gives a schema another
    id makes the restore fail, and what was registered is deleted again.
    """,
    options=(
        *RECEIPT_OPTIONS,
        *REGISTRY_OPTIONS,
        *KAFKA_TARGET,
        SCHEMAS_WAY,
        SCHEMAS_TOPIC,
        REPLICATION_FACTOR,
        CONFIRM_CLUSTER,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="ID"),),
    exits=(2, 10, 20, 30, 31, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep kafka schemas restore latest --registry http://host:8081 --dry-run",
        "logkeep kafka schemas restore latest --registry http://host:8081 --bootstrap-servers broker:9092",
    ),
)
