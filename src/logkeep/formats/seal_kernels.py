"""The CRC-32C of batches of which only the header changes, found without reading their records again.

A CRC is linear: changing some bytes changes it by what the difference of those bytes alone would have for a CRC,
carried over all that lies behind them. Carrying over n bytes multiplies a polynomial by x to the 8n-th power, modulo
the one that CRC-32C divides by. So the cost is that of a header, and whatever happens to the records after their CRC
was checked is still found by whoever checks the new one.

Polynomials are 32 bits; the highest one is the coefficient of x to the 0th.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.record_kernels import U64, Bytes, Longs, Number

Polynomials = npt.NDArray[np.uint32]

_DIVISOR = np.uint32(0x82F63B78)
_ONE, _NONE = np.uint32(1), np.uint32(0)
_X_TO_0 = np.uint32(1 << 31)


@inlined
def times_x(polynomial: Number) -> Number:
    shifted = polynomial >> _ONE
    return shifted ^ _DIVISOR if polynomial & _ONE else shifted


@inlined
def product(left: Number, right: Number) -> Number:
    total = _NONE
    for _ in range(32):
        if left & _X_TO_0:
            total ^= right
        left = np.uint32(left << _ONE)
        right = times_x(right)
    return total


@kernel
def doublings() -> Polynomials:
    """x to the 8th, and its square, and the square of that: what one, two, four, … bytes multiply by."""
    found = np.empty(64, np.uint32)
    power = _X_TO_0 >> np.uint32(8)
    for index in range(64):
        found[index] = power
        power = product(power, power)
    return found


@kernel
def sealed_again(old: Bytes, new: Bytes, behind: Longs, crcs: Polynomials, doubled: Polynomials) -> Polynomials:
    """The CRC of each batch after its bytes in the row of `old` became those of `new`; `behind` follow unchanged."""
    found = np.empty(len(crcs), np.uint32)
    for batch in range(old.shape[0]):
        row = U64(batch)
        carried = _NONE
        for column in range(old.shape[1]):
            carried ^= np.uint32(old[row, U64(column)] ^ new[row, U64(column)])
            for _ in range(8):
                carried = times_x(carried)
        left, index = behind[row], 0
        while left > 0:
            if left & 1:
                carried = product(doubled[U64(index)], carried)
            left >>= 1
            index += 1
        found[row] = crcs[row] ^ carried
    return found
