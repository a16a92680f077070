"""Values that only zkbackup's options have: transaction ids and names of bundles."""

import re
from dataclasses import dataclass

_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_DECIMAL = re.compile(r"\d{1,19}", re.ASCII)
_BUNDLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LARGEST = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True)
class Zxid:
    """A transaction, as ZooKeeper prints it (`0x500000001`) or as a number.

    Names of files hold the same digits without `0x`: those are refused, as `10` could be either.
    """

    metavar: str = "ZXID"
    expected: str = "a transaction id such as 0x500000001 or 21474836481"

    def parse(self, text: str) -> int:
        if _HEX.fullmatch(text):
            number = int(text, 16)
        elif _DECIMAL.fullmatch(text):
            number = int(text)
        else:
            hint = f"; did you mean 0x{text}?" if re.fullmatch(r"[0-9a-fA-F]{1,16}", text) else ""
            raise ValueError(f"must be {self.expected}, not {text!r}{hint}")
        if number > _LARGEST:
            raise ValueError(f"must be {self.expected}, not {text!r}: it is too large")
        return number

    def from_yaml(self, value: object) -> int:
        return self.parse(str(value))

    def show(self, value: object) -> str:
        return f"0x{value:x}" if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class BundleId:
    """The name of a bundle, which is also that of its directory."""

    metavar: str = "ID"
    expected: str = "1 to 64 letters, digits, dots, dashes or underscores, and no dot first"

    def parse(self, text: str) -> str:
        if not _BUNDLE_ID.fullmatch(text) or text.startswith("."):
            raise ValueError(f"must be {self.expected}, not {text!r}")
        return text

    def from_yaml(self, value: object) -> str:
        return self.parse(str(value))

    def show(self, value: object) -> str:
        return str(value)
