"""What every narrow phase must do, whichever it is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from weft.collision.narrow import NARROW_PHASES, ContactKind, Contacts, empty_contacts, join_contacts
from weft.errors import WeftError

NO_PAIRS = np.empty((0, 4), np.int32)
TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
ROW = np.array([[0, 1, 2, 3]], np.int32)


def piercing_step(height: float = 4e-4) -> tuple[np.ndarray, np.ndarray]:
    """A vertex that is close above a triangle at the start, and below it at the end: each member sees that."""
    x_t0 = np.concatenate([[[0.3, 0.3, height]], TRIANGLE])
    x_t1 = x_t0.copy()
    x_t1[0, 2] = -height
    return x_t0, x_t1


def check_shapes(contacts: Contacts) -> None:
    m = len(contacts.vertices)
    shapes = [(m, 4), (m, 4), (m, 3), (m,), (m,), (m,)]
    types = [np.int32, np.float64, np.float64, np.float64, np.float64, np.int8]
    assert [column.shape for column in contacts] == shapes
    assert [column.dtype for column in contacts] == types


@pytest.fixture(params=list(NARROW_PHASES))
def phase(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    return NARROW_PHASES.load(request.param)()


def test_a_vertex_through_a_triangle(phase) -> None:  # type: ignore[no-untyped-def]
    x_t0, x_t1 = piercing_step()
    found = phase.find_contacts(x_t0, x_t1, ROW, NO_PAIRS)
    check_shapes(found)
    np.testing.assert_array_equal(found.vertices, ROW)
    np.testing.assert_allclose(np.abs(found.normals), [[0.0, 0.0, 1.0]], atol=1e-9)
    assert found.normals[0, 2] > 0.0  # from the triangle to where the vertex came from
    assert found.weights[0, 0] == 1.0
    assert found.weights[0, 1:].sum() == pytest.approx(-1.0)
    assert 0.0 <= found.times[0] <= 1.0
    assert found.kinds[0] == ContactKind.NODE_TRIANGLE


def test_far_apart_is_no_contact(phase) -> None:  # type: ignore[no-untyped-def]
    x_t0, x_t1 = piercing_step()
    x_t0[0, 2] += 5.0
    x_t1[0, 2] += 5.0
    found = phase.find_contacts(x_t0, x_t1, ROW, NO_PAIRS)
    check_shapes(found)
    assert len(found.times) == 0


def test_no_candidates(phase) -> None:  # type: ignore[no-untyped-def]
    x_t0, x_t1 = piercing_step()
    check_shapes(phase.find_contacts(x_t0, x_t1, NO_PAIRS, NO_PAIRS))


def test_inputs_are_left_alone(phase) -> None:  # type: ignore[no-untyped-def]
    x_t0, x_t1 = piercing_step()
    arrays = [x_t0, x_t1, ROW.copy(), ROW.copy()]
    before = [array.copy() for array in arrays]
    phase.find_contacts(*arrays)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_contacts_follow_their_candidates(phase) -> None:  # type: ignore[no-untyped-def]
    """A moved copy of the pair gives the same contact again, in the order of the candidates."""
    x_t0, x_t1 = piercing_step()
    shift = np.array([3.0, -2.0, 1.0])
    both_t0, both_t1 = np.concatenate([x_t0, x_t0 + shift]), np.concatenate([x_t1, x_t1 + shift])
    found = phase.find_contacts(both_t0, both_t1, np.concatenate([ROW + 4, ROW]), NO_PAIRS)
    np.testing.assert_array_equal(found.vertices, np.concatenate([ROW + 4, ROW]))
    for column in (found.weights, found.normals, found.distances, found.times):
        np.testing.assert_allclose(column[0], column[1], atol=1e-9)


def test_joining_contacts() -> None:
    check_shapes(join_contacts([]))
    check_shapes(join_contacts([empty_contacts(), empty_contacts()]))


def test_names_load_without_numba() -> None:
    code = (
        "import sys, weft.collision.narrow as n; assert list(n.NARROW_PHASES) == "
        "['proximity', 'continuous', 'segment_plane', 'ray_triangle']; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(WeftError, match="unknown narrow phase 'continous'; did you mean 'continuous'"):
        NARROW_PHASES.load("continous")
