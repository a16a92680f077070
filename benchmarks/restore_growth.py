"""What a restore costs per GB and what it costs once: CPU seconds over topics of growing size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.cost_line import line
from benchmarks.timed import Span

STEPS = (1, 2, 4)


@dataclass(frozen=True)
class Measured:
    """The least CPU of some restores of one size, of payload."""

    gigabytes: float
    span: Span


def growth(unit_megabytes: int, restored: Callable[[int], Sequence[Span]]) -> list[Measured]:
    """`restored` restores so many MB some times over."""
    sizes = [step * unit_megabytes for step in STEPS]
    return [Measured(size / 1e3, min(restored(size), key=lambda span: span.cpu_s)) for size in sizes]


def tell(name: str, measured: Sequence[Measured]) -> None:
    print(f"\n{name}\n\n| GB | s | CPU s | CPU s/GB |\n|---|---|---|---|")
    for each in measured:
        seconds, cpu_s = each.span.seconds, each.span.cpu_s
        print(f"| {each.gigabytes:g} | {seconds:.1f} | {cpu_s:.2f} | {cpu_s / each.gigabytes:.2f} |")
    once, per_gb = line([(each.gigabytes, each.span.cpu_s) for each in measured])
    print(f"\nCPU = {once:.2f} s + {per_gb:.2f} s per GB", flush=True)
