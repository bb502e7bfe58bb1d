"""Convert sizes in a program on small arrays to sizes in the same program on large arrays.

The programs come from a small and a large call of one task. Each dimension whose size differs between the calls has a
prime factor of its own in the small call, larger than the number of devices. So the prime factors of a size in the
small program show which dimensions were multiplied to get this size. For example, if dimension T has size 13 in the
small call and 4,096 in the large call, then 26 = 2 * 13 becomes 2 * 4,096. A size without such prime factors does not
change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


class Ambiguous(ValueError):
    """The prime factors of a size in the small call do not tell which dimension or mesh axis the size belongs to."""


@dataclass(frozen=True)
class Substitution:
    """A conversion of sizes in a program on small arrays to sizes in the same program on large arrays.

    Attributes:
        ratios: large size / small size of each dimension and mesh axis whose size changes. The key is a prime number
            that identifies the dimension or axis. The ratio of a dimension is divided by the ratios of mesh axes whose
            sizes are factors of the dimension.
    """

    ratios: Mapping[int, Fraction]

    def of(self, size: int) -> Fraction:
        """Return the size in the large program that corresponds to ``size`` in the small program, as a fraction.

        Each prime factor of ``size`` that has a ratio multiplies ``size`` by this ratio.
        """
        grown = Fraction(size)
        for prime, ratio in self.ratios.items():
            rest = size
            while rest and rest % prime == 0:
                rest //= prime
                grown *= ratio
        return grown


def substitution(
    small: Mapping[str, int], large: Mapping[str, int], small_mesh: Mapping[str, int], large_mesh: Mapping[str, int]
) -> Substitution:
    """Return a Substitution from sizes in the program of a small call to sizes in the program of a large call.

    Raises Ambiguous if a small size does not identify its dimension or axis. An axis whose size changes needs a prime
    size that no other axis has. A dimension whose size changes needs a prime factor that is larger than the number of
    devices and divides no other dimension.

    Args:
        small, large: sizes of dimensions by name.
        small_mesh, large_mesh: sizes of mesh axes by name; both meshes have equal axis names.
    """
    axes = _of_axes(small_mesh, large_mesh)
    devices = math.prod(small_mesh.values())
    ratios = dict(axes.ratios)
    for dim, size in small.items():
        ratio = large[dim] / axes.of(size)
        if ratio == 1:
            continue
        others = [n for other, n in small.items() if other != dim]
        own = [p for p in _primes(size) if p > devices and not any(n % p == 0 for n in others)]
        if not own:
            raise Ambiguous(
                f"the dimension {dim} has size {size} in the judged call and {large[dim]} in the timing call. "
                "The grader recognizes a dimension by its size, so in the judged call choose a size with a prime "
                f"factor that is larger than {devices} (the number of devices) and that no other dimension has, "
                f"such as {_next_prime(devices, others)}"
            )
        ratios[max(own)] = ratio
    return Substitution(ratios)


def _of_axes(small: Mapping[str, int], large: Mapping[str, int]) -> Substitution:
    sizes = [n for n in small.values() if n > 1]
    for axis, size in small.items():
        if size != large[axis] and (not _is_prime(size) or sizes.count(size) > 1):
            raise Ambiguous(
                f"the mesh axis {axis} has size {size} in the judged call and {large[axis]} in the timing call. "
                "The grader recognizes an axis by its size, so in the judged call choose a prime size that no other "
                "axis has, such as 3 or 5"
            )
    return Substitution({n: Fraction(large[axis], n) for axis, n in small.items() if n != large[axis]})


def _primes(n: int) -> list[int]:
    found, p = [], 2
    while p * p <= n:
        if n % p == 0:
            found.append(p)
            while n % p == 0:
                n //= p
        p += 1
    return [*found, n] if n > 1 else found


def _is_prime(n: int) -> bool:
    return _primes(n) == [n]


def _next_prime(least: int, taken: list[int]) -> int:
    n = least + 1
    while not _is_prime(n) or any(size % n == 0 for size in taken):
        n += 1
    return n
