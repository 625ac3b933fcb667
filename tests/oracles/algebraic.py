"""Integer polynomials, their real roots in [0, 1] and exact signs at those roots: whole numbers only, no rounding.

A polynomial is a list of Python integers, lowest power first. A root is either a dyadic number or the only root of a
square-free polynomial in an open interval (i / 2^k, (i + 1) / 2^k) that can be halved at will.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

Polynomial = list[int]


def trimmed(p: Polynomial) -> Polynomial:
    while p and p[-1] == 0:
        p = p[:-1]
    return p


def add(p: Polynomial, q: Polynomial) -> Polynomial:
    size = max(len(p), len(q))
    return [(p[k] if k < len(p) else 0) + (q[k] if k < len(q) else 0) for k in range(size)]


def negate(p: Polynomial) -> Polynomial:
    return [-c for c in p]


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    product = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            product[i + j] += a * b
    return product


def value_at(p: Polynomial, i: int, k: int) -> int:
    """p(i / 2^k), times the positive number 2^(k degree)."""
    total, power = 0, 1
    for j in range(len(p) - 1, -1, -1):
        total = total * i + p[j] * power
        power <<= k
    return total


def gcd(p: Polynomial, q: Polynomial) -> Polynomial:
    """Greatest common divisor up to a factor, by pseudo-remainders with their content divided out."""
    p, q = trimmed(p), trimmed(q)
    while q:
        while len(p) >= len(q):
            lead, shift = p[-1], len(p) - len(q)
            p = [c * q[-1] for c in p]
            for j, c in enumerate(q):
                p[j + shift] -= lead * c
            p = trimmed(p)
            content = math.gcd(*p) if p else 1
            p = [c // content for c in p]
        p, q = q, p
    return p


def square_free(p: Polynomial) -> Polynomial:
    """p with every root once, as p / gcd(p, p')."""
    p = trimmed(p)
    divisor = gcd(p, [j * c for j, c in enumerate(p)][1:])
    if len(divisor) <= 1:
        return p
    quotient: list[Fraction] = []
    rest = [Fraction(c) for c in p]
    while len(rest) >= len(divisor):
        factor = rest[-1] / divisor[-1]
        quotient.insert(0, factor)
        shift = len(rest) - len(divisor)
        for j, c in enumerate(divisor):
            rest[j + shift] -= factor * c
        rest.pop()
    common = math.lcm(*(f.denominator for f in quotient))
    return [int(f * common) for f in quotient]


def bernstein(p: Polynomial, i: int, k: int) -> list[int]:
    """Bernstein coefficients of p over [i / 2^k, (i + 1) / 2^k], times a positive number."""
    degree = len(p) - 1
    shifted = [c << (k * (degree - j)) for j, c in enumerate(p)]
    for start in range(degree):  # Taylor shift by i: repeated synthetic division
        for j in range(degree - 1, start - 1, -1):
            shifted[j] += i * shifted[j + 1]
    common = math.lcm(*(math.comb(degree, m) for m in range(degree + 1)))
    return [
        sum(math.comb(j, m) * (common // math.comb(degree, m)) * shifted[m] for m in range(j + 1))
        for j in range(degree + 1)
    ]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


class MultipleRootError(Exception):
    """Halving found no end: the polynomial must be made square-free first."""


class Root:
    """The root of `p` at i / 2^k (`exact`), or its only one in (i / 2^k, (i + 1) / 2^k)."""

    def __init__(self, p: Polynomial, i: int, k: int, exact: bool) -> None:
        self.p, self.i, self.k, self.exact = p, i, k, exact

    def halve(self) -> None:
        if self.exact:
            return
        i, k = 2 * self.i, self.k + 1
        middle = sign(value_at(self.p, i + 1, k))
        if middle == 0:
            self.i, self.k, self.exact = i + 1, k, True
            return
        # the polynomial changes sign at its only root; the left end itself may be another root
        left = next(s for s in map(sign, bernstein(self.p, i, k)) if s)
        self.i, self.k = (i, k) if left != middle else (i + 1, k)

    def sign_of(self, q: Polynomial) -> int:
        """Sign of q at this root."""
        q = trimmed(q)
        if not q:
            return 0
        if self.exact:
            return sign(value_at(q, self.i, self.k))
        halvings = 0
        while True:
            signs = {sign(c) for c in bernstein(q, self.i, self.k)}
            if self.exact:
                return sign(value_at(q, self.i, self.k))
            if signs <= {0, 1} or signs <= {0, -1}:  # the root lies inside the open interval
                return 1 if 1 in signs else -1
            halvings += 1
            if halvings == 60:
                common = gcd(self.p, q)
                # it divides p, so it has one root in here or none: Descartes' count is right up to an even number
                if len(common) > 1 and _variations(bernstein(common, self.i, self.k)) % 2 == 1:
                    return 0
            self.halve()

    def compare(self, time: float) -> int:
        """Sign of (this root - time)."""
        target = Fraction(time)
        while True:
            low = Fraction(self.i, 1 << self.k)
            if self.exact:
                return sign((low > target) - (low < target))
            high = Fraction(self.i + 1, 1 << self.k)
            if target <= low:
                return 1
            if target >= high:
                return -1
            if sum(c * target**j for j, c in enumerate(self.p)) == 0:
                return 0
            self.halve()

    def approximate(self) -> float:
        while not self.exact and self.k < 80:
            self.halve()
        return float(Fraction(2 * self.i + (0 if self.exact else 1), 2 << self.k))


def _variations(coefficients: list[int]) -> int:
    signs = [s for s in map(sign, coefficients) if s]
    return sum(a != b for a, b in itertools.pairwise(signs))


def roots_in_unit_interval(p: Polynomial) -> list[Root]:
    """The roots of p in [0, 1], ascending, each once, by halving (Descartes' rule in Bernstein form)."""
    p = trimmed(p)
    if len(p) <= 1:
        return []
    try:
        return _isolate(p, 40)
    except MultipleRootError:
        return _isolate(square_free(p), 1 << 30)


def _isolate(p: Polynomial, deepest: int) -> list[Root]:
    found = [Root(p, 0, 0, True)] if p[0] == 0 else []
    pending = [(0, 0)]
    while pending:
        i, k = pending.pop()
        coefficients = bernstein(p, i, k)
        variations = _variations(coefficients)
        if variations == 1:
            found.append(Root(p, i, k, False))
        elif variations > 1:
            if k >= deepest:
                raise MultipleRootError
            pending += [(2 * i + 1, k + 1), (2 * i, k + 1)]
        if coefficients[-1] == 0:
            found.append(Root(p, i + 1, k, True))
    found.sort(key=lambda root: Fraction(2 * root.i + (0 if root.exact else 1), 2 << root.k))
    unique = []
    for root in found:  # the right end of one interval is the right end of its parents too
        last = unique[-1] if unique else None
        if last and last.exact and root.exact and Fraction(last.i, 1 << last.k) == Fraction(root.i, 1 << root.k):
            continue
        unique.append(root)
    return unique
