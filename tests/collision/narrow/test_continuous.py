"""The public call for all continuous tests, and contacts at the time of impact."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.contact_queries import KINDS, build, random_motion

from weft.collision.narrow import ContactKind
from weft.collision.narrow.continuous import METHODS, Continuous, first_contact_times, time_of_impact
from weft.errors import WeftError
from weft.jit import set_threads

NO_PAIRS = np.empty((0, 4), np.int32)
ROW = np.array([[0, 1, 2, 3]], np.int32)
VERTEX_T0 = np.array([[0.2, 0.2, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
EDGES_T0 = np.array([[-1.0, 0.1, 1.0], [1.0, 0.1, 1.0], [0.25, -1.0, 0.0], [0.25, 1.0, 0.0]])


def moved(x: np.ndarray, rows: slice, by: list[float]) -> np.ndarray:
    end = x.copy()
    end[rows] += by
    return end


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_plain_crossing(method: str) -> None:
    x_t1 = moved(VERTEX_T0, slice(0, 1), [0.1, 0.0, -4.0])
    assert time_of_impact([VERTEX_T0], [x_t1], method=method) == pytest.approx([0.25], abs=1e-6)
    if method != "triangle-space":
        x_t1 = moved(EDGES_T0, slice(0, 2), [0.1, 0.0, -4.0])
        assert time_of_impact([EDGES_T0], [x_t1], "edge-edge", method=method) == pytest.approx([0.25], abs=1e-6)


def test_answers_are_times_or_infinite() -> None:
    x_t0, x_t1 = random_motion(np.random.default_rng(1), 2000)
    for kind in KINDS:
        for method in METHODS[:3]:
            times = time_of_impact(x_t0, x_t1, kind, method=method)
            assert times.shape == (2000,)
            assert (((times >= 0.0) & (times <= 1.0)) | np.isinf(times)).all()
    assert time_of_impact(np.empty((0, 4, 3)), np.empty((0, 4, 3))).shape == (0,)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    queries = build("turning over", np.random.default_rng(2), 3000, "edge-edge")
    try:
        set_threads(1)
        serial = time_of_impact(queries.x_t0, queries.x_t1, "edge-edge")
        set_threads(None)
        np.testing.assert_array_equal(serial, time_of_impact(queries.x_t0, queries.x_t1, "edge-edge"))
    finally:
        set_threads(None)


def test_candidates_by_index_agree_with_plain_queries() -> None:
    rng = np.random.default_rng(3)
    x_t0 = rng.normal(size=(50, 3))
    x_t1 = x_t0 + rng.normal(size=(50, 3))
    rows = np.array([rng.choice(50, 4, replace=False) for _ in range(500)], np.int32)
    by_index = first_contact_times(x_t0, x_t1, rows, edges=False)
    np.testing.assert_array_equal(by_index, time_of_impact(x_t0[rows], x_t1[rows]))


def test_a_contact_carries_weights_and_normal_at_its_time() -> None:
    x_t0 = np.concatenate([VERTEX_T0, EDGES_T0 + np.array([10.0, 0.0, 0.0])])
    x_t1 = x_t0.copy()
    x_t1[0, 2] = -3.0
    x_t1[4:6, 2] = -1.0
    found = Continuous().find_contacts(x_t0, x_t1, ROW, ROW + 4)
    np.testing.assert_array_equal(found.vertices, np.concatenate([ROW, ROW + 4]))
    np.testing.assert_allclose(found.times, [0.25, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.weights, [[1, -0.6, -0.2, -0.2], [0.375, 0.625, -0.45, -0.55]], atol=1e-6)
    np.testing.assert_allclose(found.normals, [[0, 0, 1], [0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(found.distances, 0.0, atol=1e-5)
    np.testing.assert_array_equal(found.kinds, [ContactKind.NODE_TRIANGLE, ContactKind.EDGE_EDGE])


@pytest.mark.parametrize("method", METHODS)
def test_normals_oppose_the_approach_even_at_rounding(method: str) -> None:
    """At the papers' roots the gap is rounding of either sign; the normal points to where the vertex came from."""
    rng = np.random.default_rng(4)
    queries = build("crossing", rng, 200, "vertex-triangle")
    rows = np.arange(800, dtype=np.int32).reshape(-1, 4)
    found = Continuous(method=method).find_contacts(
        queries.x_t0.reshape(-1, 3), queries.x_t1.reshape(-1, 3), rows, NO_PAIRS
    )
    assert len(found.times) > 150
    motion = (queries.x_t1 - queries.x_t0)[found.vertices[:, 0] // 4]
    approach = np.einsum("qk,qki,qi->q", found.weights, motion, found.normals)
    touching = np.abs(found.distances) < 1e-12
    assert (approach[touching] <= 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "edge-edg"}, "unknown kind 'edge-edg'; did you mean 'edge-edge'?"),
        ({"method": "cubik"}, "unknown method 'cubik'; did you mean 'cubic'?"),
        ({"separation": -1.0}, "separation: expected a finite number of at least 0, got -1.0"),
        ({"separation": np.inf}, "separation: expected a finite number of at least 0, got inf"),
        ({"x_t1": np.zeros((2, 4, 3))}, "x_t1: expected shape (1, 4, 3) as x_t0 has, got (2, 4, 3)"),
        ({"x_t1": np.full((1, 4, 3), np.inf)}, "x_t1: query 0 is NaN or infinite"),
        (
            {"kind": "edge-edge", "method": "triangle-space"},
            "method 'triangle-space' tests a vertex against a triangle only; use 'conservative' for edges",
        ),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(WeftError) as caught:
        time_of_impact(**{"x_t0": np.zeros((1, 4, 3)), "x_t1": np.zeros((1, 4, 3)), **arguments})  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_member_checks_its_parameters() -> None:
    with pytest.raises(WeftError, match="unknown method 'exact'"):
        Continuous(method="exact")
