"""Spark's own connectors for Kafka and Avro, which judge ours: the newest that registries have and this Spark loads.

The Kafka connector asks for a token provider of its own version, which the registry does not have. The provider's
oldest release does as well: without delegation tokens nothing of it is called.
"""

from tests.support.servers.exact_jars import ExactJars

CONNECTORS = ExactJars(
    "spark-connectors-4.2.0",
    (
        "org.apache.commons:commons-pool2:2.13.1",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.spark:spark-avro_2.13:4.1.1",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    ),
)
