"""Edges that end longer than the solve meant: which are eased, how far, and what stays."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.edges import edge_lengths, lengths_along, overstretched
from weft.geometry.mesh import build_grid
from weft.simulation.easing import Easing

PIN = 44


class FreeResponse:
    """Lets all go where they want, and says that so many were held back."""

    def __init__(self, held_back):
        self.held_back = held_back

    def follow(self, goal):
        return goal


@pytest.fixture
def mesh():
    return build_grid((0.4, 0.4), (9, 9))


@pytest.fixture
def masses(mesh, rng):
    return rng.uniform(0.5, 2.0, mesh.n_vertices)


@pytest.fixture
def easing(mesh, masses):
    edges = mesh.topology.edges
    is_pinned = np.arange(mesh.n_vertices) == PIN
    return Easing(mesh.topology, edge_lengths(mesh.positions, edges), np.full(len(edges), 0.08), masses, is_pinned)


def turned(x, angle, chosen):
    """`x` with the chosen vertices turned about the y axis as a linear solve would: straight ahead, not around."""
    out = x.copy()
    out[chosen, 2] += np.tan(angle) * (x[chosen, 0] - x[chosen, 0].min())
    return out


def test_edges_that_turned_far_get_the_length_that_the_solve_meant(mesh, easing):
    """A vertex rises by two thirds of an edge: the others draw near, and those far from it stay."""
    x, edges = mesh.positions, mesh.topology.edges
    rest = edge_lengths(x, edges)
    goal = x.copy()
    goal[40, 2] += 0.033
    assert (edge_lengths(goal, edges) / rest).max() > 1.15
    eased = easing.unturned(x, goal)
    assert (edge_lengths(eased, edges) / rest).max() < 1.05
    np.testing.assert_array_equal(eased[[8, 72]], x[[8, 72]])  # across the diagonals, which bring others nearer
    np.testing.assert_array_equal(eased[PIN], x[PIN])


def test_momentum_is_kept(mesh, masses):
    x, edges = mesh.positions, mesh.topology.edges
    none = np.zeros(mesh.n_vertices, np.bool_)
    free = Easing(mesh.topology, edge_lengths(x, edges), np.full(len(edges), 0.08), masses, none)
    goal = turned(x, 0.5, x[:, 0] > 0.05)
    moved = masses[:, None] * (free.unturned(x, goal) - goal)
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(moved.sum(axis=0), 0.0, atol=1e-12)


def test_what_pulls_at_the_cloth_still_stretches_it(mesh, easing):
    """A stretch along the edges is meant; and the same cloth turned keeps that stretch."""
    x, edges = mesh.positions, mesh.topology.edges
    pulled = x * [1.3, 1.0, 1.0]
    assert easing.unturned(x, pulled) is pulled
    goal = turned(pulled, 0.4, x[:, 0] > -1.0)
    eased = easing.unturned(x, goal)
    assert eased is not goal
    meant = np.maximum(lengths_along(x, goal, edges), edge_lengths(x, edges))
    across = np.abs(x[edges[:, 0], 0] - x[edges[:, 1], 0]) > 0.01
    stretch = edge_lengths(eased, edges)[across] / edge_lengths(x, edges)[across] - 1.0
    assert stretch.max() < (edge_lengths(goal, edges) / edge_lengths(x, edges)).max() - 1.0
    assert np.median(edge_lengths(eased, edges)[across] / meant[across]) == pytest.approx(1.0, abs=0.02)


def test_neighbours_follow_a_vertex_that_is_held_back(mesh, easing):
    """One vertex is behind by two thirds of an edge: all edges around it end within the limit, pins where they were."""
    x, edges = mesh.positions, mesh.topology.edges
    goal = x.copy()
    goal[40] -= [0.033, 0.0, 0.0]
    args = edges, edge_lengths(x, edges), np.full(len(edges), 0.08)
    assert len(overstretched(x, goal, *args)) > 0
    pulled = easing.released(x, goal, goal, FreeResponse(0))
    np.testing.assert_array_equal(pulled, goal, "something pulls at it")
    eased = easing.released(x, goal, goal, FreeResponse(1))
    assert len(overstretched(x, eased, *args)) == 0
    np.testing.assert_array_equal(eased[PIN], x[PIN])
    assert np.abs(eased[40] - x[40]).max() > 0.005


class NarrowResponse(FreeResponse):
    """Lets vertices come half of the way to where they want to go, since a part of every gap is kept."""

    def __init__(self, x):
        super().__init__(1)
        self.x = x

    def follow(self, goal):
        self.x = 0.5 * (self.x + goal)
        return self.x


def test_a_jammed_edge_is_eased_until_it_is_within_its_limit(mesh, easing):
    """It comes half of the way to where it should be each time: four times are not enough."""
    x, edges = mesh.positions, mesh.topology.edges
    rest = edge_lengths(x, edges)
    goal = x.copy()
    goal[40] += [0.0, 0.0, 0.23]
    eased = easing.released(x, goal, goal, NarrowResponse(goal))
    assert len(overstretched(x, eased, edges, rest, np.full(len(edges), 0.08))) == 0


class JammedResponse(FreeResponse):
    """Lets one vertex go nowhere."""

    def __init__(self, x, vertex):
        super().__init__(1)
        self.place, self.vertex, self.attempts = x[vertex].copy(), vertex, 0

    def follow(self, goal):
        self.attempts += 1
        out = goal.copy()
        out[self.vertex] = self.place
        return out


def test_others_come_to_a_vertex_that_is_jammed(mesh, easing):
    """As ready to move as the others, it would leave edges overstretched after eight attempts."""
    x, edges = mesh.positions, mesh.topology.edges
    goal = x.copy()
    goal[40] += [0.0, 0.0, 0.05]
    response = JammedResponse(goal, 40)
    eased = easing.released(x, goal, goal, response)
    assert len(overstretched(x, eased, edges, edge_lengths(x, edges), np.full(len(edges), 0.08))) == 0
    assert response.attempts <= 3
