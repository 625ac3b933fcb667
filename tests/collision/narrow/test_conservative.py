"""The conservative test never misses and is never late: against constructed contacts and the exact oracle."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from tests.oracles.contact_queries import (
    FAMILIES,
    KINDS,
    Floats,
    build,
    nearly_flat_motion,
    nudged,
    random_motion,
)
from tests.oracles.rational_contact import certainly_apart, first_contact
from tests.oracles.rational_distance import distance_sq_at

from weft.collision.narrow.continuous import time_of_impact

# exponent and offset of the coordinates: as they are, far from the origin, huge, and down to the smallest doubles
SCALES = {"plain": (-22, 0), "far away": (-22, 2**48), "huge": (973, 0), "tiny": (-1074, 0)}
EARLY = 1e-5  # of the step; seen: below 1e-6


def unknown_contacts(name: str, rng: np.random.Generator, n: int, kind: str) -> tuple[Floats, Floats]:
    """Queries that only the oracle can judge."""
    if name == "random":
        return random_motion(rng, n)
    if name == "nearly flat":
        return nearly_flat_motion(rng, n)
    families = list(FAMILIES)
    parts = [nudged(build(family, rng, n // len(families) + 1, kind), rng) for family in families]
    return np.concatenate([a for a, _ in parts])[:n], np.concatenate([b for _, b in parts])[:n]


def judge(x_t0: Floats, x_t1: Floats, kind: str) -> dict[str, int]:
    """Counts of contacts, misses, late, false and early answers of the conservative test."""
    times = time_of_impact(x_t0, x_t1, kind)
    counts = dict.fromkeys(("contacts", "missed", "late", "false", "early"), 0)
    apart = certainly_apart(x_t0, x_t1, kind)
    for i, time in enumerate(times):
        contact = None if apart[i] else first_contact(x_t0[i], x_t1[i], kind)
        if contact is None:
            counts["false"] += bool(np.isfinite(time))
            continue
        counts["contacts"] += 1
        if not np.isfinite(time):
            counts["missed"] += 1
            continue
        counts["late"] += contact.compare(time) < 0
        counts["early"] += contact.approximate() - time > EARLY
    return counts


def check_constructed(n: int, seed: int) -> int:
    """n queries of each family, kind and scale; returns how many that was."""
    total = 0
    for family in FAMILIES:
        for kind in KINDS:
            for scale, (exponent, offset) in SCALES.items():
                queries = build(family, np.random.default_rng(seed), n, kind, exponent, offset)
                times = time_of_impact(queries.x_t0, queries.x_t1, kind)
                late = ~(times <= queries.contact_times)
                assert not late.any(), f"{family}, {kind}, {scale}: query {int(np.argmax(late))}"
                assert (times >= 0.0).all()
                total += n
    return total


def test_no_constructed_contact_is_missed() -> None:
    check_constructed(500, seed=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["random", "nearly flat", "nudged"])
def test_against_the_oracle(name: str, kind: str) -> None:
    x_t0, x_t1 = unknown_contacts(name, np.random.default_rng(2), 1000, kind)
    counts = judge(x_t0, x_t1, kind)
    assert counts["contacts"] > 20
    assert counts["missed"] == 0
    assert counts["late"] == 0
    if name == "random":
        assert counts["false"] == 0
        assert counts["early"] == 0


@pytest.mark.slow
def test_a_million_queries() -> None:
    """936,000 with a contact by construction and 64,800 that the oracle judges."""
    total = check_constructed(9000, seed=3)
    for name in ("random", "nearly flat", "nudged"):
        for kind in KINDS:
            x_t0, x_t1 = unknown_contacts(name, np.random.default_rng(4), 10_800, kind)
            counts = judge(x_t0, x_t1, kind)
            assert (counts["missed"], counts["late"]) == (0, 0), f"{name}, {kind}: {counts}"
            total += len(x_t0)
    assert total >= 1_000_000


def test_touching_at_both_ends_counts() -> None:
    triangle = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    above, on = [[0.25, 0.25, 1.0], *triangle], [[0.25, 0.25, 0.0], *triangle]
    assert time_of_impact([on], [above]) == [0.0]
    assert time_of_impact([above], [on]) == pytest.approx([1.0], abs=1e-6)
    assert time_of_impact([above], [above]) == [np.inf]


@pytest.mark.parametrize("motion", [[0, 0, 1], [5, 3, 0], [-1, 2, 0.5], [0, 0, 0]])
def test_parting_from_a_tiny_gap_is_free(motion: list[float]) -> None:
    """A vertex 1e-13 of the triangle's size away may part, slide along it and rest, while both move as one."""
    x_t0 = np.array([[0.3, 0.3, 1e-13], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x_t1 = x_t0 + np.array([0.5, -0.25, 0.0])
    x_t1[0] += motion
    assert time_of_impact([x_t0], [x_t1]) == [np.inf]


def test_turning_together_is_free() -> None:
    """Two long edges that turn by 80 degrees, a thousandth of their length apart: no one direction separates them."""
    angle = np.radians(80)
    turn = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])
    x_t0 = np.array([[-1, 0.1, 1e-3], [1, -0.1, 1e-3], [-1, -0.1, 0], [1, 0.1, 0]])
    assert time_of_impact([x_t0], [x_t0 @ turn.T], "edge-edge") == [np.inf]


@pytest.mark.parametrize("kind", KINDS)
def test_separation_is_kept(kind: str) -> None:
    """At no sampled time before the answer is the exact distance within the separation."""
    rng = np.random.default_rng(6)
    x_t0, x_t1 = random_motion(rng, 40)
    met = 0
    for separation in (1e-3, 0.1, 0.5):
        times = time_of_impact(x_t0, x_t1, kind, separation)
        met += np.isfinite(times).sum()
        for a, b, time in zip(x_t0, x_t1, times, strict=True):
            samples = [Fraction(k, 16) for k in range(17) if k / 16 < time]
            if time <= 1.0:
                samples.append(Fraction(time) * Fraction(999_999, 1_000_000))
                # and the answer is not needlessly early
                later = min(Fraction(1), Fraction(time) + Fraction(1, 100_000))
                assert distance_sq_at(a, b, later, kind) <= Fraction(separation + 1e-3) ** 2
            for sample in samples:
                if sample < time:
                    assert distance_sq_at(a, b, sample, kind) > Fraction(separation) ** 2
    assert met > 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-300, 2.0**300, 2.0**1000])
def test_scaling_by_powers_of_two_changes_nothing(scale: float, kind: str) -> None:
    x_t0, x_t1 = random_motion(np.random.default_rng(7), 300)
    plain = time_of_impact(x_t0, x_t1, kind, separation=0.125)
    scaled = time_of_impact(x_t0 * scale, x_t1 * scale, kind, separation=0.125 * scale)
    np.testing.assert_array_equal(np.isfinite(scaled), np.isfinite(plain))
    np.testing.assert_allclose(scaled[np.isfinite(plain)], plain[np.isfinite(plain)], atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.full((1, 4, 3), np.finfo(np.float64).max) * [[[1], [-1], [-1], [1]]],
        lambda: np.full((1, 4, 3), 5e-324) * np.arange(12).reshape(1, 4, 3),
        lambda: np.zeros((1, 4, 3)),
    ],
)
def test_extreme_numbers_give_an_answer(make: Callable[[], Floats]) -> None:
    x = make()
    for kind in KINDS:
        for separation in (0.0, 1.0, np.finfo(np.float64).max):
            times = time_of_impact(x, x[:, ::-1], kind, separation)
            assert ((times >= 0.0) & ((times <= 1.0) | np.isinf(times))).all()
