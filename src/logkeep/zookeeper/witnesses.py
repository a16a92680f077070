"""Who must be heard before a hole is filled: of every lost transaction one who holds it, and one who contradicts.

Others may be left out, however many there are. Who holds the same record as one that is heard has nothing to add, and
whoever is asked later and has another record contradicts one that is heard.
"""

from collections.abc import Iterator, Sequence

from logkeep.formats.zookeeper.txnlog import ScannedLog
from logkeep.zookeeper.donors import Views, differing
from logkeep.zookeeper.model.archived import KeptLog
from logkeep.zookeeper.repair_plan import Donor, Past, outside
from logkeep.zookeeper.timeline.log_check import good_runs, lost_of
from logkeep.zookeeper.timeline.survey import runs_of

_Spans = tuple[tuple[int, int], ...]


def witnesses(views: Views, log: KeptLog, scanned: ScannedLog | None, donors: Sequence[Donor]) -> tuple[Donor, ...]:
    """Those of the donors of a damaged log; earlier ones are preferred."""
    gone = tuple(lost_of(log, good_runs(scanned) if scanned is not None else []))
    heard, unheard, undisputed = list[Donor](), gone, gone
    for donor in donors:
        if donor.past is Past.OTHER:
            continue
        left = outside(unheard, donor.runs)
        contradicted = tuple(runs_of(iter(sorted(set(_contradicted(views, donor, heard, undisputed))))))
        if left != unheard or contradicted:
            heard.append(donor)
        unheard, undisputed = left, outside(undisputed, contradicted)
    return tuple(heard)


def _contradicted(views: Views, donor: Donor, heard: Sequence[Donor], spans: _Spans) -> Iterator[int]:
    """Transactions of the spans that somebody who was heard has another record of."""
    for other in heard:
        if both := _within(_within(spans, donor.runs), other.runs):
            yield from differing(views, (other.view, other.log), (donor.view, donor.log), both)


def _within(spans: _Spans, runs: _Spans) -> _Spans:
    return outside(spans, outside(spans, runs))
