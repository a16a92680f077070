"""Instances that follow one source together: the active one makes rounds, the others wait for its role."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from logkeep.errors import Locked, LogkeepError
from logkeep.repository.chain.lease import Renewal
from logkeep.repository.chain.roles import InstanceRole, RoleSeat
from logkeep.repository.follow import Stopping

_GRAIN_S = 1.0


@dataclass(frozen=True)
class RoleStop:
    """A `Stopping` that joins the user's stop and the end of the role: after either, the current round is the last."""

    user: Stopping
    seat: RoleSeat
    monotonic: Callable[[], float] = time.monotonic

    @property
    def requested(self) -> bool:
        return self.user.requested or not self.seat.active

    def wait(self, seconds: float) -> None:
        until_s = self.monotonic() + seconds
        while not self.requested and (left_s := until_s - self.monotonic()) > 0:
            self.user.wait(min(left_s, _GRAIN_S))

    def raising(self) -> AbstractContextManager[None]:
        return self.user.raising()


@dataclass(frozen=True)
class Standby:
    """One instance, until the user stops it. `rounds` follows the source until its stop is requested."""

    seat: RoleSeat
    stop: Stopping
    poll_s: float
    rounds: Callable[[Stopping], None]
    changed: Callable[[InstanceRole], None]
    """Called when the role changes."""
    retry_cures: Callable[[LogkeepError], bool]

    def run(self) -> None:
        role: InstanceRole | None = None
        while not self.stop.requested:
            now = InstanceRole.ACTIVE if self._try_take() else InstanceRole.PASSIVE
            if now is not role:
                role = now
                self.changed(role)
            self.seat.report(role)
            if role is InstanceRole.ACTIVE:
                self._work()
            else:
                self.stop.wait(self.poll_s)

    def _try_take(self) -> bool:
        try:
            return self.seat.try_take()
        except LogkeepError as error:
            if not self.retry_cures(error):
                raise
            return False  # it waits, as it does while another instance is active

    def _work(self) -> None:
        interval_s = self.seat.lifetime_s / 3
        with Renewal(self._renew, interval_s):
            try:
                self.rounds(RoleStop(self.stop, self.seat))
            except Locked:
                if not self.seat.active:
                    return  # another instance has the role, and the lease of a round
                self.seat.release()
                raise
            except BaseException:
                self.seat.release()
                raise
            if self.stop.requested:
                self.seat.release()

    def _renew(self) -> bool:
        if not self.seat.renew():
            return False
        self.seat.report(InstanceRole.ACTIVE)
        return True
