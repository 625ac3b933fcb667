"""Filtered conjugate gradients against the dense system, reduced to the free directions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.oracles.dense_system import (
    implicit_matrix,
    random_projectors,
    random_system,
    solve_constrained,
    spring_blocks,
    spring_matrix,
)

from weft.arrays import NO_FLOATS
from weft.linear.blocks import build_matrix, update_implicit_matrix
from weft.linear.constraints import build_constraints
from weft.linear.filtered import FilteredSystem
from weft.linear.patches import build_patches
from weft.linear.pcg import build_work, solve_filtered, update_impulses
from weft.linear.springs import build_springs, no_springs

DT = 0.02


class System:
    """A random matrix, in blocks and dense, and a right-hand side; the last third of the pairs is even."""

    def __init__(self, rng, n, n_pairs):
        pairs, stiffness, damping, masses, extra = random_system(rng, n, n_pairs)
        full, self.n = 2 * len(pairs) // 3, n
        even = -rng.uniform(1.0, 100.0, len(pairs) - full)
        stiffness[full:], damping[full:] = even[:, None, None] * np.eye(3), 0.0
        self.matrix = build_matrix(pairs, n, len(even))
        update_implicit_matrix(masses, extra, stiffness[:full], damping[:full], even, DT, self.matrix)
        self.dense = implicit_matrix(masses, pairs, stiffness, damping, extra, DT)
        self.springs = no_springs(n)
        self.b = rng.normal(size=(n, 3))
        self.x = rng.normal(size=(n, 3))

    def add_springs(self, rng, m):
        """Contacts of four vertices, some of weight 0 where a vertex is not free to move."""
        vertices = np.stack([rng.permutation(self.n)[:4] for _ in range(m)]).astype(np.int32)
        weights = rng.normal(size=(m, 4)) * rng.choice([0.0, 1.0], size=(m, 4), p=[0.2, 0.8])
        normals = rng.normal(size=(m, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        along, across = rng.uniform(0.0, 10.0, size=(2, m))
        across[::3] = 0.0
        self.springs = build_springs(vertices, weights, normals, along, across, self.n)
        self.dense += spring_matrix(vertices, weights, spring_blocks(self.springs), self.n)

    def solve(self, filters, start, tolerance=1e-13, max_iterations=10_000):
        x, patches = start.copy(), build_patches(self.matrix)
        iterations, residual = solve_filtered(
            self.matrix,
            self.springs,
            patches,
            self.x,
            self.b,
            filters,
            tolerance,
            np.inf,
            max_iterations,
            True,
            *build_work(self.matrix, patches),
            x,
        )
        return x, iterations, residual

    def free_residual(self, filters, x):
        """Residual in the free directions relative to the right-hand side, in the norm of the preconditioner."""
        apply = preconditioner(self, filters)
        rest = np.einsum("nij,nj->ni", filters, self.b - (self.dense @ x.ravel()).reshape(-1, 3)).ravel()
        right = np.einsum("nij,nj->ni", filters, self.b).ravel()
        return np.sqrt(rest @ apply @ rest / (right @ apply @ right))


def preconditioner(system, filters):
    """The inverses of vertices, small patches and all large patches together, dense."""
    n, patches, springs = system.n, build_patches(system.matrix), system.springs
    blocks = system.dense.reshape(n, 3, n, 3)
    own = np.linalg.inv(blocks[np.arange(n), :, np.arange(n), :])
    out = np.zeros((n, 3, n, 3))
    out[np.arange(n), :, np.arange(n), :] = filters @ own @ filters
    out = out.reshape(3 * n, 3 * n)
    each = spring_blocks(springs)
    bare = system.dense - spring_matrix(springs.vertices, springs.weights, each, n)
    weights = free_weights(springs, filters)
    small = np.repeat(np.arange(len(patches.small_inverse)), np.diff(patches.row_starts))[patches.rows]
    large = patches.large[patches.rows]
    sizes = np.einsum("nii->n", system.matrix.diagonal)[:, None, None] / 3.0
    ties = np.zeros((n, 3, n, 3))
    ties[np.arange(n), :, np.arange(n), :] = sizes * (np.eye(3) - filters)
    ties = ties.reshape(3 * n, 3 * n)
    free = np.tile(np.eye(3), (n, 1, 1))
    for group in range(len(patches.small_inverse)):
        own = np.where(small == group, 0, -1)
        z, tied = (rigid_motions(system.x, f, large, own, 1) for f in (filters, free))
        block = z.T @ (bare + spring_matrix(springs.vertices, weights, each, n)) @ z + tied.T @ ties @ tied
        out += z @ np.linalg.pinv(block, rcond=1e-12, hermitian=True) @ z.T
    z, tied = (rigid_motions(system.x, f, large, large, len(patches.inverse)) for f in (filters, free))
    coarse = z.T @ bare @ z + tied.T @ ties @ tied
    room = {(row, k) for k in range(len(patches.inverse)) for row in column(patches, k)}
    for k in range(len(springs.vertices)):
        among = np.unique(large[springs.vertices[k, np.flatnonzero(weights[k])]])
        spring = spring_matrix(springs.vertices[k : k + 1], weights[k : k + 1], each[k : k + 1], n)
        part = z.T @ spring @ z
        if any((i, j) not in room for i in among for j in among if i > j):
            patch = np.repeat(np.arange(len(patches.inverse)), 6)
            part = np.where(patch[:, None] == patch, part, 0.0)
        coarse += part
    return out + z @ np.linalg.pinv(coarse, rcond=1e-12, hermitian=True) @ z.T


def free_weights(springs, filters):
    """(m, 4) without ends that are held: patches take them to stand still."""
    is_free = np.trace(filters, axis1=1, axis2=2) == 3.0
    return np.where(is_free[springs.vertices], springs.weights, 0.0)


def column(patches, k):
    return patches.column_rows[patches.column_starts[k] : patches.column_starts[k + 1]]


def rigid_motions(x, filters, large, group, n_groups):
    """(3 n, 6 g) what shifts and turns of the groups, 0 to g - 1, do to vertices, where they are free to follow."""
    z = np.zeros((len(x), 3, n_groups, 6))
    for i in np.flatnonzero(group >= 0):
        rx, ry, rz = x[i] - x[large == large[i]].mean(axis=0)
        turns = np.array([[0.0, rz, -ry], [-rz, 0.0, rx], [ry, -rx, 0.0]])
        z[i, :, group[i]] = filters[i] @ np.hstack([np.eye(3), turns])
    return z.reshape(3 * len(x), 6 * n_groups)


def prescribed(rng, filters):
    """A random change in the directions that are not free."""
    z = rng.normal(size=(len(filters), 3))
    return z - np.einsum("nij,nj->ni", filters, z)


@pytest.mark.parametrize(("n", "n_pairs"), [(1, 0), (2, 3), (7, 12), (50, 160), (131, 300)])
def test_free_system_is_the_dense_solution(rng, n, n_pairs):
    system = System(rng, n, n_pairs)
    x, _, residual = system.solve(build_constraints(n).filters, np.zeros((n, 3)))
    assert residual <= 1e-13
    np.testing.assert_allclose(x.ravel(), np.linalg.solve(system.dense, system.b.ravel()), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("n", "n_pairs"), [(1, 0), (5, 8), (60, 200)])
def test_constrained_system_is_the_reduced_dense_solution(rng, n, n_pairs):
    """Vertices with no, one, two and three free directions, all with a prescribed change in the others."""
    system = System(rng, n, n_pairs)
    filters = random_projectors(rng, np.arange(n) % 4)
    z = prescribed(rng, filters)
    x, _, _ = system.solve(filters, z)
    np.testing.assert_allclose(x, solve_constrained(system.dense, system.b, filters, z), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("m", [1, 40])
def test_contact_springs_add_to_the_matrix(rng, m):
    system = System(rng, 60, 150)
    system.add_springs(rng, m)
    filters = random_projectors(rng, np.arange(60) % 4)
    z = prescribed(rng, filters)
    x, _, _ = system.solve(filters, z)
    np.testing.assert_allclose(x, solve_constrained(system.dense, system.b, filters, z), rtol=1e-8, atol=1e-10)
    out = np.full((60, 3), np.nan)
    update_impulses(system.matrix, system.springs, x, system.b, np.arange(60) % 4 < 3, out)
    expected = (system.dense @ x.ravel() - system.b.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(out, np.where((np.arange(60) % 4 == 3)[:, None], 0.0, expected), atol=1e-11)


def test_guess_in_the_free_directions_changes_the_way_not_the_answer(rng):
    system = System(rng, 30, 90)
    filters = random_projectors(rng, rng.integers(0, 4, 30))
    z = prescribed(rng, filters)
    guess = np.einsum("nij,nj->ni", filters, rng.normal(size=(30, 3)))
    x, _, _ = system.solve(filters, z + guess)
    np.testing.assert_allclose(x, system.solve(filters, z)[0], rtol=1e-8, atol=1e-10)
    exact = solve_constrained(system.dense, system.b, filters, z)
    assert system.solve(filters, exact, tolerance=1e-8)[1] == 0


def test_pinned_vertices_get_exactly_what_is_prescribed(rng):
    system = System(rng, 30, 90)
    filters = random_projectors(rng, np.where(np.arange(30) % 3 == 0, 0, 3))
    z = prescribed(rng, filters)
    x, _, _ = system.solve(filters, z)
    np.testing.assert_array_equal(x[::3], z[::3])


def test_all_constrained_keeps_what_comes_in(rng):
    system = System(rng, 12, 30)
    z = rng.normal(size=(12, 3))
    x, iterations, residual = system.solve(np.zeros((12, 3, 3)), z)
    np.testing.assert_array_equal(x, z)
    assert (iterations, residual) == (0, 0.0)


def test_empty_system(rng):
    x, iterations, residual = System(rng, 0, 0).solve(np.zeros((0, 3, 3)), np.zeros((0, 3)))
    assert x.shape == (0, 3)
    assert (iterations, residual) == (0, 0.0)


def test_nothing_to_do_for_a_right_hand_side_of_zero(rng):
    system = System(rng, 20, 60)
    system.b[:] = 0.0
    x, iterations, residual = system.solve(build_constraints(20).filters, np.zeros((20, 3)))
    assert (iterations, residual) == (0, 0.0)
    assert not x.any()


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6, 1e-10])
def test_tolerance_is_honoured(rng, tolerance):
    """The residual, measured densely, is what was asked for and what is reported."""
    system = System(rng, 80, 240)
    system.add_springs(rng, 20)
    filters = random_projectors(rng, rng.integers(0, 4, 80))
    x, _, reported = system.solve(filters, np.zeros((80, 3)), tolerance)
    assert reported <= tolerance
    assert system.free_residual(filters, x) == pytest.approx(reported, rel=1e-2)


def test_looser_tolerance_takes_fewer_iterations(rng):
    system = System(rng, 80, 240)
    counts = [system.solve(build_constraints(80).filters, np.zeros((80, 3)), t)[1] for t in (1e-1, 1e-4, 1e-8)]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("allowed", [0, 1, 2, 5])
def test_never_more_iterations_than_allowed(rng, allowed):
    system = System(rng, 80, 240)
    filters = build_constraints(80).filters
    x, iterations, reported = system.solve(filters, np.zeros((80, 3)), 1e-12, allowed)
    assert iterations == allowed
    assert reported > 1e-12
    assert system.free_residual(filters, x) == pytest.approx(reported, rel=1e-6)


def test_no_more_iterations_than_unknowns(rng):
    """Conjugate directions: 3 n steps answer n blocks, rounding aside."""
    system = System(rng, 4, 8)
    _, iterations, _ = system.solve(build_constraints(4).filters, np.zeros((4, 3)), 1e-9)
    assert iterations <= 12


def test_impulses_are_a_times_x_minus_b_of_what_is_held(rng):
    system = System(rng, 25, 70)
    x, out = rng.normal(size=(25, 3)), np.full((25, 3), np.nan)
    update_impulses(system.matrix, no_springs(len(x)), x, system.b, np.arange(25) < 20, out)
    expected = (system.dense @ x.ravel() - system.b.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(out[:20], expected[:20], atol=1e-11)
    assert not out[20:].any()


def test_stiff_cloth_in_single_precision_moves_as_a_whole(rng):
    """Threads ten million times as stiff as a vertex is heavy: what falls, falls, and is not stopped by rounding."""
    n = 20
    index = np.arange(n * n, dtype=np.int32).reshape(n, n)
    ends = [index[1:], index[:-1]], [index[:, 1:], index[:, :-1]], [index[1:, 1:], index[:-1, :-1]]
    pairs = np.concatenate([np.stack([i.ravel(), j.ravel()], axis=1) for i, j in ends])
    ways = rng.normal(size=(len(pairs), 3))
    stiffness = -np.einsum("pi,pj->pij", ways, ways) * rng.uniform(0.1, 1.0, size=(len(pairs), 1, 1))
    masses = np.full(n * n, 1e-7)
    matrix = build_matrix(pairs, n * n, 0, np.float32)
    update_implicit_matrix(masses, np.zeros((n * n, 3, 3)), stiffness, 0.0 * stiffness, NO_FLOATS, 1.0, matrix)
    patches, x = build_patches(matrix), np.zeros((n * n, 3))
    filters, speed = build_constraints(n * n).filters, np.array([1.0, -2.0, 3.0])
    where, b = rng.normal(size=(n * n, 3)), masses[:, None] * speed
    work = build_work(matrix, patches)
    solve_filtered(matrix, no_springs(n * n), patches, where, b, filters, 1e-4, np.inf, 1000, True, *work, x)
    assert np.abs(x - speed).mean() < 1e-2


@pytest.mark.parametrize("free", [3, 2, 0])
def test_a_loose_solve_leaves_no_net_force_on_a_piece(rng, free):
    """Two pieces that nothing ties together, each with its own sum; some vertices have only `free` directions."""
    halves = [random_system(rng, 90, 300) for _ in range(2)]
    pairs, stiffness, damping, masses, extra = (np.concatenate(part) for part in zip(*halves, strict=True))
    pairs[300:] += 90
    system = FilteredSystem(pairs.astype(np.int32), 180, np.float32)
    system.assemble(rng.normal(size=(180, 3)), masses, extra, stiffness, damping, NO_FLOATS, DT)
    drag = np.abs(rng.normal(size=(180, 1, 1))) * np.eye(3)
    system.add_drag(drag)
    filters = random_projectors(rng, np.where(np.arange(180) % 9 == 0, free, 3))
    constraints = build_constraints(180)._replace(filters=filters, change=prescribed(rng, filters))
    b = rng.normal(size=(180, 3))
    dv, _ = system.solve(b, constraints, np.zeros((180, 3)), 1e-2, 1.0, 1000)
    dense = implicit_matrix(masses, pairs, stiffness, damping, extra, DT)
    left = b - (dense @ dv.ravel()).reshape(-1, 3) - (drag @ dv[:, :, None])[:, :, 0]
    left = np.einsum("nij,nj->ni", filters, left).reshape(2, 90, 3)
    assert system.iterations < 30
    assert np.abs(left).max() > 1e-3
    np.testing.assert_allclose(left.sum(axis=1), 0.0, atol=1e-6)  # by a matrix in single precision


THREADS = """
import hashlib, numpy as np
from tests.linear.test_pcg import System, prescribed, update_impulses
from tests.oracles.dense_system import random_projectors
from weft.jit import set_threads
seen = set()
for threads in (1, 2, 3):
    set_threads(threads)
    rng = np.random.default_rng(5)
    system = System(rng, 301, 1200)
    system.add_springs(rng, 100)
    filters = random_projectors(rng, rng.integers(0, 4, 301))
    x, iterations, residual = system.solve(filters, prescribed(rng, filters), 1e-10)
    rest = np.empty_like(x)
    update_impulses(system.matrix, system.springs, x, system.b, np.ones(301, bool), rest)
    matrix = system.matrix
    parts = (matrix.diagonal, matrix.off_diagonal, matrix.even, x, rest, np.array([iterations, residual]))
    seen.add(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
print(len(seen))
"""


def test_bits_do_not_depend_on_the_number_of_threads():
    """In a process of its own, which may use more threads than this one."""
    environment = {**os.environ, "WEFT_THREADS": "4"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"
