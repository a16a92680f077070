"""What is done with the members of a real ensemble while it works."""

from logkeep.formats.zookeeper.agreement import same_transaction
from logkeep.formats.zookeeper.names import epoch_of
from tests.support.processes import wait_for
from tests.support.servers.zookeeper_ensemble import OBSERVER, ZooKeeperEnsemble, ZooKeeperMember
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.server_files import logs
from tests.support.zookeeper.slow_log import record_at
from tests.support.zookeeper.tree_judge import logged
from tests.support.zookeeper.tree_recorder import Recording, record


def leave_and_join(ensemble: ZooKeeperEnsemble) -> None:
    """The observer: two reconfigurations."""
    with raw.RawSession(ensemble.leader().client, password=ensemble.password) as client:
        client.must(raw.reconfig(leaving=str(OBSERVER)))
        client.must(raw.reconfig(joining=f"server.{OBSERVER}={ensemble.observer.line}"))
    wait_for(ensemble.observer.serves, "the observer to serve again")


def everywhere_the_same(ensemble: ZooKeeperEnsemble) -> Recording:
    """Sessions of members that were killed run out first."""
    while True:
        wait_for(ensemble.agree, "the members to agree")
        seen = [record(member.client, ensemble.password) for member in ensemble.members.values()]
        wait_for(ensemble.agree, "the members to agree")
        nodes = [logged(each.nodes) for each in seen]
        if all(each == nodes[0] for each in nodes):
            return seen[-1]


def members_agree(ensemble: ZooKeeperEnsemble, leader: ZooKeeperMember, until: int) -> None:
    """In the last epoch, where nobody was killed: every member logged the same, the observer in its own way."""
    voter, observer = (_logged_in(member, epoch_of(until)) for member in (leader, ensemble.observer))
    common = voter.keys() & observer.keys()
    assert common
    assert all(same_transaction(voter[zxid], observer[zxid]) for zxid in common)
    assert any(voter[zxid] != observer[zxid] for zxid in common), "no failed multi: then this shows nothing"


def _logged_in(member: ZooKeeperMember, epoch: int) -> dict[int, bytes]:
    """Bodies by zxid. Members of 3.5 to 3.8 log some again when they have caught up: the same ones, but that a multi
    which failed may have its parts marked in one of the two."""
    found: dict[int, bytes] = {}
    for path in logs(member.log_dir):
        content, at = path.read_bytes(), len(LOG_HEADER)
        while (each := record_at(content, at)) is not None:
            at = each.end
            if epoch_of(each.zxid) == epoch:
                before = found.setdefault(each.zxid, each.body)
                assert same_transaction(before, each.body), f"{each.zxid:x}: {before.hex()} and {each.body.hex()}"
    return found
