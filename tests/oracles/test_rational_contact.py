"""The oracle itself, where the answer is known by hand or by construction."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.algebraic import roots_in_unit_interval, square_free
from tests.oracles.contact_queries import FAMILIES, KINDS, build, random_motion
from tests.oracles.rational_contact import certainly_apart, first_contact

TRIANGLE = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_roots_of_known_polynomials() -> None:
    # (3t - 1)(t - 1)(2t + 5): 1/3 and 1 in [0, 1]
    p = [5, -18, 7, 6]
    roots = roots_in_unit_interval(p)
    assert [root.approximate() for root in roots] == pytest.approx([1 / 3, 1.0])
    assert roots[0].sign_of([-1, 3]) == 0  # 3t - 1 vanishes there, exactly
    assert roots[0].sign_of([-1, 4]) == 1
    assert roots[0].compare(1 / 3) == 1  # the double below 1/3
    assert roots[1].compare(1.0) == 0


def test_multiple_roots_are_found_once() -> None:
    # (3t - 1)^2 (t - 2)
    p = [-2, 13, -24, 9]
    assert len(square_free(p)) == 3
    assert [root.approximate() for root in roots_in_unit_interval(p)] == pytest.approx([1 / 3])


def test_vertex_through_a_triangle() -> None:
    x_t0, x_t1 = [[0.25, 0.25, 1], *TRIANGLE], [[0.25, 0.25, -2], *TRIANGLE]
    contact = first_contact(x_t0, x_t1, "vertex-triangle")
    assert contact is not None
    assert contact.approximate() == pytest.approx(1 / 3)
    assert first_contact([[0.75, 0.75, 1], *TRIANGLE], [[0.75, 0.75, -2], *TRIANGLE], "vertex-triangle") is None


def test_motion_within_the_plane() -> None:
    x_t0, x_t1 = [[-1, 0.25, 0], *TRIANGLE], [[1, 0.25, 0], *TRIANGLE]
    contact = first_contact(x_t0, x_t1, "vertex-triangle")
    assert contact is not None
    assert contact.approximate() == 0.5
    assert first_contact([[-1, 2, 0], *TRIANGLE], [[1, 2, 0], *TRIANGLE], "vertex-triangle") is None


def test_collinear_edges() -> None:
    x_t0 = [[0, 0, 0], [1, 0, 0], [3, 0, 0], [4, 0, 0]]
    x_t1 = [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0.5, 0, 0]]
    contact = first_contact(x_t0, x_t1, "edge-edge")
    assert contact is not None
    assert contact.approximate() == 0.5
    assert first_contact(x_t0, x_t0, "edge-edge") is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_constructed_contacts_are_contacts(family: str, kind: str) -> None:
    queries = build(family, np.random.default_rng(3), 25, kind)
    for x_t0, x_t1, time in zip(*queries, strict=True):
        contact = first_contact(x_t0, x_t1, kind)
        assert contact is not None
        assert contact.compare(time) <= 0
    assert not certainly_apart(queries.x_t0, queries.x_t1, kind).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_filter_agrees(kind: str) -> None:
    x_t0, x_t1 = random_motion(np.random.default_rng(4), 300)
    apart = certainly_apart(x_t0, x_t1, kind)
    assert 0.3 < apart.mean() < 0.99
    contacts = [first_contact(a, b, kind) for a, b in zip(x_t0, x_t1, strict=True)]
    assert not any(apart[i] for i, contact in enumerate(contacts) if contact is not None)
    assert any(contact is not None for contact in contacts)
