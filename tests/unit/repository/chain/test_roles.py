"""The role of instances: never two active, whatever stops, however clocks differ; and what `status` reads."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from logkeep.errors import LeaseLost, Locked, StoreUnreachable
from logkeep.model.time import random_token
from logkeep.repository.access import create_repository
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import Owner
from logkeep.repository.chain.roles import InstanceRole, RoleSeat, instances, read_role
from logkeep.repository.chain.write_session import writing
from logkeep.repository.follow import Stopping
from logkeep.repository.standby import RoleStop, Standby
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore

NOW = datetime(2026, 11, 15, tzinfo=UTC)
LIFETIME_S = 30.0


class Hosts:
    """Two instances on hosts of their own: one store, monotonic clocks in step, wall clocks that may be wrong."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.store = MemoryStore(lambda: NOW)
        made = create_repository(self.store, StoreFacts(True, True, False), NOW, lambda: "0" * 16)
        self.place = made.place("prod")
        self.cut_off: set[str] = set()

    def seat(self, name: str, wanted: InstanceRole = InstanceRole.ACTIVE, ahead: float = 0.0) -> RoleSeat:
        store = FaultyStore(self.store, lambda *_: self._fault(name))
        place = SourceRef(store, self.place.repository, "prod")
        owner = Owner(f"run of {name}", f"host of {name}", 1)
        clock = lambda: NOW + timedelta(seconds=self.seconds + ahead)  # noqa: E731
        return RoleSeat(place, name, owner, LIFETIME_S, clock, lambda: self.seconds, wanted=wanted)

    def _fault(self, name: str) -> Fault | None:
        return Fault(before=StoreUnreachable("cut off")) if name in self.cut_off else None


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def test_both_started_as_active(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b")
    assert [a.try_take(), b.try_take()] == [True, False]
    assert [a.active, b.active] == [True, False]
    a.confirm()
    with pytest.raises(LeaseLost):
        b.confirm()


def test_a_passive_one_lets_the_other_begin_and_begins_if_there_is_none(hosts: Hosts) -> None:
    b = hosts.seat("b", InstanceRole.PASSIVE)
    assert not b.try_take()
    hosts.seconds += LIFETIME_S + 1
    assert b.try_take()


def test_it_is_taken_over_on_release_at_once_and_on_expiry_after_its_lifetime(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b", InstanceRole.PASSIVE)
    assert a.try_take()
    assert not b.try_take()
    a.release()
    assert b.try_take()
    assert not a.active
    assert not a.try_take(), "it waits for its turn"
    hosts.seconds += LIFETIME_S  # b is killed
    assert not a.try_take()
    hosts.seconds += LIFETIME_S / 3 + 1
    assert a.try_take()
    found = read_role(hosts.place)
    assert found is not None
    assert (found[0].instance, found[0].epoch) == ("a", 3)


def test_one_that_renews_keeps_it_however_wrong_the_clock_of_the_other_is(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b", ahead=7200.0)
    assert a.try_take()
    for _ in range(20):
        hosts.seconds += LIFETIME_S / 3
        assert a.renew()
        assert not b.try_take()
    assert a.active


def test_a_zombie_knows_by_its_own_clock_and_is_refused(hosts: Hosts) -> None:
    """Stopped by SIGSTOP: it renews nothing, and the other one takes over."""
    a, b = hosts.seat("a"), hosts.seat("b")
    assert a.try_take()
    assert not b.try_take()
    hosts.seconds += LIFETIME_S * 4 / 3 + 1
    assert b.try_take()
    assert not a.active, "before it has asked the store"
    with pytest.raises(LeaseLost):
        a.confirm()
    assert not a.renew()
    b.confirm()


def test_one_that_is_cut_off_from_the_store_gives_up_before_the_other_begins(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b")
    assert a.try_take()
    hosts.cut_off.add("a")
    for _ in range(8):
        hosts.seconds += LIFETIME_S / 4
        a.renew()
        b.try_take()
        assert not (b.active and a.active), "two are active"
    assert b.instance == read_role(hosts.place)[0].instance  # type: ignore[index]


@pytest.mark.parametrize("seed", range(20))
def test_never_two_active_whatever_happens(hosts: Hosts, seed: int) -> None:
    chance = random.Random(seed)
    seats = [hosts.seat("a", ahead=chance.uniform(-120, 120)), hosts.seat("b", ahead=chance.uniform(-120, 120))]
    stopped: set[RoleSeat] = set()
    takeovers = 0
    for _ in range(300):
        hosts.seconds += chance.uniform(0.5, 12)
        for seat in seats:
            chance.choice((hosts.cut_off.add, hosts.cut_off.discard, hosts.cut_off.discard))(seat.instance)
            chance.choice((stopped.add, stopped.discard, stopped.discard))(seat)
            if seat in stopped:
                continue
            try:
                takeovers += not seat.active and seat.try_take()
                if seat.active and chance.random() < 0.9:
                    seat.renew()
                if seat.active and chance.random() < 0.02:
                    seat.release()
            except StoreUnreachable:
                pass
            assert sum(each.active for each in seats) <= 1
    assert takeovers > 2


def test_an_instance_reports_for_status(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b")
    a.report(InstanceRole.ACTIVE)
    b.report(InstanceRole.PASSIVE)
    b.report(InstanceRole.PASSIVE)
    assert [(each.instance, each.role) for each in instances(hosts.place)] == [("a", "active"), ("b", "passive")]
    hosts.store.delete(layout.instance("prod", "a"))
    hosts.store.put_new(layout.instance("prod", "a"), b"spoiled")
    assert [each.instance for each in instances(hosts.place)] == ["b"]


class _Stop:
    """Stops after some waits."""

    def __init__(self, hosts: Hosts, waits: int) -> None:
        self.hosts, self.left = hosts, waits

    @property
    def requested(self) -> bool:
        return self.left <= 0

    def wait(self, seconds: float) -> None:
        self.left -= 1
        self.hosts.seconds += seconds

    def raising(self):  # type: ignore[no-untyped-def]
        raise NotImplementedError


def test_rounds_are_made_only_while_active_and_the_role_is_released_at_the_end(hosts: Hosts) -> None:
    a, b = hosts.seat("a"), hosts.seat("b")
    assert a.try_take()
    told, stop = list[str](), _Stop(hosts, 30)

    def rounds(until: Stopping) -> None:
        told.append("round")
        b.confirm()
        until.wait(5.0)
        stop.left = 0

    Standby(b, stop, 10.0, rounds, told.append, lambda _: True).run()
    assert told == ["passive", "active", "round"], "after the lifetime of the other one"
    assert not b.active
    assert a.try_take(), "released, so at once"


@pytest.mark.parametrize("met", [LeaseLost("lost"), Locked("backup by b holds the source")])
def test_an_instance_that_meets_the_next_active_one_is_passive_again(hosts: Hosts, met: Locked) -> None:
    """After a full disk a round ends with the lease of another run; here that run is the next active instance's."""
    a, b = hosts.seat("a"), hosts.seat("b")
    told, stop = list[str](), _Stop(hosts, 3)

    def rounds(_: Stopping) -> None:
        assert not b.try_take()
        hosts.seconds += LIFETIME_S * 2
        assert b.try_take()
        raise met

    Standby(a, stop, 1.0, rounds, told.append, lambda _: True).run()
    assert told == ["active", "passive"]


def test_rounds_end_when_the_role_is_lost(hosts: Hosts) -> None:
    a = hosts.seat("a")
    assert a.try_take()
    until = RoleStop(_Stop(hosts, 99), a, lambda: hosts.seconds)
    assert not until.requested
    until.wait(LIFETIME_S * 2)
    assert until.requested
    assert hosts.seconds < LIFETIME_S + 2, "it does not wait on when the role is gone"


def test_documents_of_silent_instances_are_removed_but_for_the_two_that_reported_last() -> None:
    moment = [NOW]
    store = MemoryStore(lambda: moment[0])
    place = create_repository(store, StoreFacts(True, True, False), NOW, lambda: "0" * 16).place("prod")

    def report(name: str, days: int) -> None:
        moment[0] = NOW + timedelta(days=days)
        owner = Owner(f"run of {name}", "host", 1)
        RoleSeat(place, name, owner, LIFETIME_S, lambda: moment[0], lambda: 0.0).report(InstanceRole.PASSIVE)

    def collected(days: int) -> list[str]:
        moment[0] = NOW + timedelta(days=days)
        with writing(place, "gc", lambda: moment[0], random_token) as session:
            collect(session, GarbageRules())
        return [each.instance for each in instances(place)]

    report("first", 0)
    report("second", 1)
    report("third", 20)
    assert collected(30) == ["first", "second", "third"]
    assert collected(31) == ["second", "third"], "silent for more than 30 days"
    assert collected(400) == ["second", "third"], "status still names a standby that is gone"
