"""Kernels compile where nothing can be kept, too."""

from logkeep.formats.jit import kernel


def test_a_kernel_without_a_place_for_its_cache_is_compiled_all_the_same() -> None:
    """Code that came from no file has none: what a read-only machine looks like to numba."""
    scope: dict[str, object] = {"kernel": kernel}
    exec("@kernel\ndef double(number):\n    return 2 * number\n", scope)  # noqa: S102 - our own two lines
    double = scope["double"]
    assert callable(double)
    assert double(21) == 42
