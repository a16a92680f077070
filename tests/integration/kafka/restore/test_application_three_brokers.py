"""Leaders of an application on three brokers are killed, and so is the broker that leads their log, at the same moment.

The log has three replicas, of which two must confirm: what was committed is on the broker that leads next.
"""

from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import NewTopic
from kafka import KafkaAdminClient, TopicPartition

from tests.support.kafka.application_processes import killed_itself
from tests.support.kafka.bank_on_kafka import BankOnKafka
from tests.support.processes import wait_for
from tests.support.running_application import copies, ended
from tests.support.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.xdist_group("kafka-three")
NAME = "bank-of-brokers"
LOG = f"{NAME}.log"


def _bank(cluster: KafkaCluster, home: Path) -> BankOnKafka:
    """Nodes 2 and 3 lead the log; both replicate it."""
    new = [
        NewTopic(
            f"{NAME}.{each}", 2, replica_assignment=[[2, 3, 1], [3, 2, 1]], config={"min.insync.replicas": "2"}
        )
        for each in ("log", "inbox", "replies")
    ]  # fmt: skip
    for made in cluster.admin.create_topics(new).values():
        made.result(30)
    wait_for(lambda: cluster.leader(LOG) == 2, "the leader")
    return BankOnKafka(",".join(member.bootstrap for member in cluster.members.values()), home, NAME)


def _move(cluster: KafkaCluster, replicas: list[int]) -> None:
    """The first of the replicas leads partition 0 of the log from now on."""
    client = KafkaAdminClient(bootstrap_servers=cluster.members[1].bootstrap)
    client.alter_partition_reassignments({TopicPartition(LOG, 0): replicas})
    client.close()
    wait_for(lambda: cluster.in_sync(LOG) == set(replicas), "all replicas to be in sync")
    cluster.admin.elect_leaders(ElectionType.PREFERRED, [Position(LOG, 0)]).result(30)
    wait_for(lambda: cluster.leader(LOG) == replicas[0], "the new leader")


def test_s1_s4_with_the_broker_that_leads_the_log(cluster: KafkaCluster, tmp_path: Path) -> None:
    bank = _bank(cluster, tmp_path)
    with bank.running("data", hold_at="0/copy: open the store"):
        bank.work(4)
        bank.begin(4)
        bank.created(4)
        bank.work(2)
        _move(cluster, [3, 2, 1])
        assert bank.port.state("a0") == b"\xfe"  # it goes on with the new leader
    bank.forget_state()
    with bank.running("data", kill_at="0/before created") as process:
        settled = ended(bank.place, 4)  # S4: the log with its created is replayed from another broker
        assert (settled.state, "the leader" in settled.reason, bank.outcomes(4)) == ("failed", True, ["failed"])
        create = bank.begin(6, (0,))
        assert killed_itself(process)
    cluster.members[3].kill()
    wait_for(lambda: cluster.leader(LOG) == 2, "another leader")
    cluster.members[3].start()  # it may coordinate transactions and groups, whose topics have one replica here
    with bank.running("data"):
        for partition in (0, 1):
            bank.port.create(partition, create)
        assert (ended(bank.place, 6).state, bank.outcomes(6)) == ("completed", ["completed"])  # S1
        assert len(copies(bank.place, 6)) == 2
        assert [bank.port.state(f"a{number}") for number in range(4)] == [b"\xfe", b"\xfe", b"\xff", b"\xff"]
