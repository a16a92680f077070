"""What is paid once, and what per gigabyte: a line through measurements of growing size."""


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Least squares: what is paid at once, and per gigabyte."""
    n, x, y = len(points), sum(p[0] for p in points), sum(p[1] for p in points)
    xx, xy = sum(p[0] ** 2 for p in points), sum(p[0] * p[1] for p in points)
    slope = (n * xy - x * y) / (n * xx - x * x) if n > 1 else 0.0
    return (y - slope * x) / n, slope
