"""Does keeping offsets cost anything where there is nothing to fill? The middle of the ratios of many pairs.

Both kinds send the same bytes by the same code, and two restores differ by more than what is looked for: so they are
taken in pairs, one right after the other, either of them first in turns.
"""

from collections.abc import Callable, Sequence
from statistics import quantiles

from benchmarks.timed import Span
from logkeep.kafka.restore.units import Offsets

PAIRS = 12


def pairs(restored: Callable[[Offsets], Span]) -> list[tuple[Span, Span]]:
    """`preserve` and `translate`, some times over."""
    found = []
    for number in range(PAIRS):
        kinds = [Offsets.PRESERVE, Offsets.TRANSLATE]
        spans = {kind: restored(kind) for kind in (kinds if number % 2 else reversed(kinds))}
        found.append((spans[Offsets.PRESERVE], spans[Offsets.TRANSLATE]))
    return found


def tell(name: str, found: Sequence[tuple[Span, Span]]) -> None:
    print(f"\n{name}, {len(found)} pairs\n\n| preserve ÷ translate | lower quarter | middle | upper quarter |")
    print("|---|---|---|---|")
    ratios = {"time": [p.seconds / t.seconds for p, t in found], "client CPU": [p.cpu_s / t.cpu_s for p, t in found]}
    for what, values in ratios.items():
        low, middle, high = quantiles(values, n=4)
        print(f"| {what} | {low:.2f} | {middle:.2f} | {high:.2f} |", flush=True)
