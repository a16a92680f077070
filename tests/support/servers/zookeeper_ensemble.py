"""A real ensemble of any version: three voters and an observer, which can be killed and started one by one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from logkeep.embedded.ports import free_ports
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import ClusterUnreachable
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_srvr
from tests.support.processes import wait_for
from tests.support.zookeeper.unstartable_snapshots import make_startable

VOTERS = (1, 2, 3)
OBSERVER = 4
_PASSWORD = "ensemble"
_ASK_S = 5.0
_SETTINGS = {"initLimit": "40", "syncLimit": "20", "reconfigEnabled": "true", "standaloneEnabled": "false"}


class ZooKeeperMember(EmbeddedZooKeeper):
    """One of them. `peers` are the lines of all members, which are known once each has its ports."""

    def __init__(
        self,
        directory: Path,
        cache: Path,
        number: int,
        release: ZooKeeperRelease,
        settings: Mapping[str, str],
        java_options: Sequence[str] = (),
    ) -> None:
        super().__init__(
            directory,
            cache,
            release=release,
            settings={**_SETTINGS, **settings},
            log_dir=directory / "txnlog",
            my_id=number,
            java_options=java_options,
            password=_PASSWORD,
        )
        self.number = number
        self.peers: dict[str, str] = {}
        self._ports = free_ports(2)

    @property
    def observes(self) -> bool:
        return self.number == OBSERVER

    @property
    def line(self) -> str:
        """How the others know it. Since 3.5 that says where its clients come in, too."""
        quorum, election = self._ports
        role = "observer" if self.observes else "participant"
        where = f"127.0.0.1:{quorum}:{election}"
        if self.release.line < (3, 5):
            return f"{where}:{role}"
        return f"{where}:{role};127.0.0.1:{self.port}"

    def properties(self) -> dict[str, str]:
        found = super().properties() | self.peers
        if self.release.line < (3, 5):
            return found | ({"peerType": "observer"} if self.observes else {})
        return {key: value for key, value in found.items() if not key.startswith("clientPort")}

    def state(self) -> ServerState | None:
        """None while it serves nobody, or does not run."""
        try:
            return parse_srvr(four_letter(self.client, "srvr", _ASK_S))
        except ClusterUnreachable:
            return None


class ZooKeeperEnsemble:
    """`with ZooKeeperEnsemble(directory, cache, release) as ensemble:` all four serve, and stop at the end."""

    def __init__(
        self,
        directory: Path,
        cache: Path,
        release: ZooKeeperRelease,
        settings: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self.members = {
            number: ZooKeeperMember(directory / str(number), cache, number, release, settings or {}, java_options)
            for number in (*VOTERS, OBSERVER)
        }
        lines = {f"server.{number}": member.line for number, member in self.members.items()}
        for member in self.members.values():
            member.peers = lines
        self.release, self.password = release, _PASSWORD

    @property
    def hosts(self) -> str:
        return ",".join(member.client for member in self.members.values())

    @property
    def voters(self) -> list[ZooKeeperMember]:
        return [self.members[number] for number in VOTERS]

    @property
    def observer(self) -> ZooKeeperMember:
        return self.members[OBSERVER]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start those that do not run, and wait until all serve."""
        for member in self.members.values():
            if member.pid is None:
                member.launch()
        for member in self.members.values():
            member.wait_until_serving()

    def stop(self) -> None:
        for member in reversed(self.members.values()):
            member.stop()

    def leader(self) -> ZooKeeperMember:
        wait_for(lambda: self._leader() is not None, "a leader")
        found = self._leader()
        assert found is not None
        return found

    def next_epoch(self) -> None:
        """Kill the leader, let the others choose another one, and bring it back."""
        old = self.leader()
        old.kill()
        others = [member for member in self.voters if member is not old]
        wait_for(lambda: any(_leads(member.state()) for member in others), "another leader")
        make_startable(old)
        self.start()

    def agree(self) -> bool:
        """Whether all have processed the same transactions: true after a while without writes."""
        states = [member.state() for member in self.members.values()]
        return None not in states and len({state.zxid for state in states if state is not None}) == 1

    def _leader(self) -> ZooKeeperMember | None:
        return next((member for member in self.voters if _leads(member.state())), None)


@contextmanager
def running(*members: ZooKeeperMember) -> Iterator[None]:
    """All serve inside."""
    try:
        for member in members:
            member.launch()
        for member in members:
            member.wait_until_serving()
        yield
    finally:
        for member in members:
            member.stop()


def _leads(state: ServerState | None) -> bool:
    return state is not None and state.mode == "leader"
