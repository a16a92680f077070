"""Small pieces of SVG text: no library is needed for rectangles and words."""

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

SANS = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element. `content` is SVG; `class_` is the attribute `class`, `text_anchor` is `text-anchor`."""
    written = "".join(f" {_name(key)}={quoteattr(_value(value))}" for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    return element("text", escape(words), x=x, y=y, **attributes)


def picture(width: float, height: float, title: str, content: Iterable[str], style: str = "") -> str:
    """A whole file. The title is what a screen reader reads."""
    parts = [element("title", escape(title)), *([element("style", style)] if style else []), *content]
    body = "\n".join(parts)
    view = f"0 0 {_value(width)} {_value(height)}"
    root = element(
        "svg", f"\n{body}\n", xmlns="http://www.w3.org/2000/svg", viewBox=view, width=width, height=height, role="img"
    )
    return f"{root}\n"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
