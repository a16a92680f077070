"""Legal segments for property tests, with names that are short, long and odd."""

from hypothesis import strategies as st

from logkeep.model.segments import Codec, Collection, LogName, Proof, Segment

_NAME_LETTERS = "aZ09._-"

log_names = st.builds(
    LogName,
    st.sampled_from(Collection),
    st.text(_NAME_LETTERS, min_size=1, max_size=6).filter(lambda name: name not in {".", ".."}) | st.just("n" * 249),
    st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,3}", fullmatch=True) | st.just("h" * 64),
    st.sampled_from([0, 1, 10, 2**31 - 1]),
)

_positions = st.integers(0, 50) | st.integers(0, 2**63 - 1)


@st.composite
def segments(draw: st.DrawFn, log: st.SearchStrategy[LogName] = log_names) -> Segment:
    start, end = sorted((draw(_positions), draw(_positions)))
    return Segment(
        log=draw(log),
        start=start,
        end=end,
        first=draw(_positions),
        has_object=draw(st.booleans()),
        proof=draw(st.sampled_from(Proof)),
        token=draw(st.binary(min_size=8, max_size=8)).hex(),
        records=draw(_positions),
        stored_bytes=draw(_positions),
        plain_bytes=draw(_positions),
        base_time_ms=draw(st.integers(-(2**63), 2**63 - 1)),
        max_time_ms=draw(st.integers(-1, 2**41)),
        sha256=draw(st.binary(min_size=32, max_size=32)).hex(),
        plain_sha256=draw(st.binary(min_size=32, max_size=32)).hex(),
        codec=draw(st.sampled_from(Codec)),
        digest=draw(st.sampled_from(["", "sha256:" + "0" * 64, "x" * 128])),
    )


def key(segment: Segment) -> tuple[LogName, int, str]:
    """What rows are sorted by."""
    return (segment.log, segment.start, segment.token)


def rows(max_size: int = 30) -> st.SearchStrategy[list[Segment]]:
    """Segments of a few logs, no object twice, in any order."""
    few_logs = st.lists(log_names, min_size=1, max_size=4)
    return few_logs.flatmap(lambda logs: st.lists(segments(st.sampled_from(logs)), max_size=max_size, unique_by=key))
