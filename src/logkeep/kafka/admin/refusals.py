"""What a cluster refused of many things that it was asked at once: the others were done."""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.errors import ClusterError
from logkeep.kafka.codes import failure


@dataclass(frozen=True)
class Refusal:
    """One thing, the broker's code and its own words."""

    subject: str
    doing: str
    code: int
    message: str

    def error(self) -> ClusterError:
        return failure(self.code, subject=self.subject, doing=self.doing, message=self.message)


def raise_first(refusals: Iterable[Refusal]) -> None:
    """Raise the error of the first one, if there is one."""
    for each in refusals:
        raise each.error()
