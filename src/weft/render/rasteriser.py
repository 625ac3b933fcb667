"""The z-buffer: which triangle is seen at every sample of a picture or of a shadow map.

A vertex arrives as (X, Y, W, K): it is seen at pixel (X / W, Y / W), and the key that decides who is in front is
linear over the picture, K / W at the vertex. For the camera W is the depth and K = 1, so the key is 1 / depth; for a
directional light W = 1 and K is the height towards the light. The larger key is in front.

The edges of a triangle are taken in homogeneous coordinates (Olano and Greer 1997, "Triangle scan conversion using
2D homogeneous coordinates"): edge function i is (v_j x v_k) . (x, y, 1), and all three have the sign of
det [v_0 v_1 v_2] exactly where the triangle is seen. Nothing is divided by W, so a triangle that passes the eye needs
no clipping: only its bounding box does, and the near plane cuts sample by sample. Two triangles that share an edge
compute it with every bit the same but the sign, so no sample between them is missed.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints
from weft.jit import kernel
from weft.render.jobs import run_bands

NOTHING = -1  # the triangle number where a sample shows none
BANDS = 24
SLACK = 1e-6  # [pixels]
EDGE_ON = 1e-12  # relative size of a determinant that may be nothing but rounding

Keys = npt.NDArray[np.float32]
Triple = tuple[float, float, float]


def sample_offsets(side: int) -> Floats:
    """Places of `side` squared samples in a pixel: a square lattice, turned so that no two share a row or a column.

    With n = side^2, point i lies at ((i + 1/2) / n, (side (i + 1) mod (n + 1) - 1/2) / n). An edge that is nearly
    upright or level then meets n different places instead of `side`.
    """
    n = side * side
    i = np.arange(n)
    return np.stack([(i + 0.5) / n, (side * (i + 1) % (n + 1) - 0.5) / n], axis=1)


@kernel
def _visible_box(vertices: Floats, triangles: Ints, ti: int, near: float) -> tuple[float, float, float, float]:
    """The box in the picture, (x low, x high, y low, y high), of the part of a triangle beyond the near plane."""
    x_low, x_high, y_low, y_high = math.inf, -math.inf, math.inf, -math.inf
    for k in range(3):
        a, b = triangles[ti, k], triangles[ti, (k + 1) % 3]
        wa, wb = vertices[a, 2], vertices[b, 2]
        if wa >= near:
            x, y = vertices[a, 0] / wa, vertices[a, 1] / wa
            x_low, x_high = min(x_low, x), max(x_high, x)
            y_low, y_high = min(y_low, y), max(y_high, y)
        if (wa >= near) != (wb >= near):
            t = (near - wa) / (wb - wa)
            x = (vertices[a, 0] + t * (vertices[b, 0] - vertices[a, 0])) / near
            y = (vertices[a, 1] + t * (vertices[b, 1] - vertices[a, 1])) / near
            x_low, x_high = min(x_low, x), max(x_high, x)
            y_low, y_high = min(y_low, y), max(y_high, y)
    return x_low, x_high, y_low, y_high


@kernel
def edge_functions(a: Triple, b: Triple, c: Triple) -> tuple[Triple, Triple, Triple, float]:
    """The edge functions across from corners a, b and c (X, Y, W), as coefficients of (x, y, 1); and det [a b c]."""
    ea = (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    eb = (c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0])
    ec = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    return ea, eb, ec, a[0] * ea[0] + a[1] * ea[1] + a[2] * ea[2]


@kernel
def _narrow(low: float, high: float, inv_slope: float, value: float) -> tuple[float, float]:
    """Cut the columns from low to high to where an edge function, `value` at column 0, is not negative."""
    end = -value * inv_slope  # NaN where numbers overflow: then nothing is cut
    if inv_slope > 0.0 and end > low:
        low = end
    if inv_slope < 0.0 and end < high:
        high = end
    return low, high


@kernel
def _rasterise_triangle(
    vertices: Floats,
    triangles: Ints,
    ti: int,
    offsets: Floats,
    near: float,
    rows: tuple[int, int],
    columns: tuple[float, float],
    keys_out: Keys,
    ids_out: Ints,
) -> None:
    """Write one triangle into rows and columns, from the first to the last,."""
    a, b, c = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
    ea, eb, ec, det = edge_functions(
        (vertices[a, 0], vertices[a, 1], vertices[a, 2]),
        (vertices[b, 0], vertices[b, 1], vertices[b, 2]),
        (vertices[c, 0], vertices[c, 1], vertices[c, 2]),
    )
    sign = 1.0 if det > 0.0 else -1.0
    # Seen edge on, up to rounding, a triangle covers nothing: no key passes the test below.
    size = abs(vertices[a, 0] * ea[0]) + abs(vertices[a, 1] * ea[1]) + abs(vertices[a, 2] * ea[2])
    inv_det = 1.0 / det if abs(det) > EDGE_ON * size else math.nan
    ka, kb, kc = vertices[a, 3] * inv_det, vertices[b, 3] * inv_det, vertices[c, 3] * inv_det
    key_x = ka * ea[0] + kb * eb[0] + kc * ec[0]
    key_y = ka * ea[1] + kb * eb[1] + kc * ec[1]
    key_1 = ka * ea[2] + kb * eb[2] + kc * ec[2]
    is_picture = ids_out.shape[0] > 0
    largest_key = 1.0 / near if is_picture else math.inf
    slope_a, slope_b, slope_c = sign * ea[0], sign * eb[0], sign * ec[0]
    inv_a = 1.0 / slope_a if slope_a != 0.0 else 0.0
    inv_b = 1.0 / slope_b if slope_b != 0.0 else 0.0
    inv_c = 1.0 / slope_c if slope_c != 0.0 else 0.0
    for row in range(rows[0], rows[1] + 1):
        for s in range(len(offsets)):
            x, y = offsets[s, 0], row + offsets[s, 1]
            row_a = sign * (ea[1] * y + ea[2])
            row_b = sign * (eb[1] * y + eb[2])
            row_c = sign * (ec[1] * y + ec[2])
            row_key = key_y * y + key_1
            low, high = _narrow(columns[0], columns[1], inv_a, row_a + slope_a * x)
            low, high = _narrow(low, high, inv_b, row_b + slope_b * x)
            low, high = _narrow(low, high, inv_c, row_c + slope_c * x)
            if low <= high + 1.0:
                # Rounding moves the ends by far less than a column; the test below has the last word.
                for column in range(int(low), int(min(high + 1.0, columns[1])) + 1):
                    x = column + offsets[s, 0]
                    if row_a + slope_a * x >= 0.0 and row_b + slope_b * x >= 0.0 and row_c + slope_c * x >= 0.0:
                        key = row_key + key_x * x
                        if key <= largest_key and np.float32(key) > keys_out[row, column, s]:
                            keys_out[row, column, s] = key
                            if is_picture:
                                ids_out[row, column, s] = ti


@kernel
def _rasterise_band(
    vertices: Floats,
    triangles: Ints,
    top: int,
    bottom: int,
    offsets: Floats,
    near: float,
    keys_out: Keys,
    ids_out: Ints,
) -> None:
    """Draw all triangles into the rows from `top` to before `bottom`."""
    width, n_samples = keys_out.shape[1], keys_out.shape[2]
    for row in range(top, bottom):
        for column in range(width):
            for s in range(n_samples):
                keys_out[row, column, s] = -math.inf
                if ids_out.shape[0] > 0:
                    ids_out[row, column, s] = NOTHING
    x_first, x_last, y_first, y_last = 1.0, 0.0, 1.0, 0.0  # of the samples in a pixel
    for s in range(n_samples):
        x_first, x_last = min(x_first, offsets[s, 0]), max(x_last, offsets[s, 0])
        y_first, y_last = min(y_first, offsets[s, 1]), max(y_last, offsets[s, 1])
    for ti in range(len(triangles)):
        x_low, x_high, y_low, y_high = _visible_box(vertices, triangles, ti, near)
        # Many small triangles fall between the samples. The slack leaves what is on an edge to the edge functions.
        x_low, x_high = max(0.0, x_low - x_last - SLACK), min(width - 1.0, x_high - x_first + SLACK)
        y_low, y_high = max(float(top), y_low - y_last - SLACK), min(bottom - 1.0, y_high - y_first + SLACK)
        first_row, last_row = math.ceil(y_low), math.floor(y_high)
        first, last = math.ceil(x_low), math.floor(x_high)
        if x_low <= x_high and y_low <= y_high and first_row <= last_row and first <= last:
            rows, columns = (int(first_row), int(last_row)), (float(first), float(last))
            _rasterise_triangle(vertices, triangles, ti, offsets, near, rows, columns, keys_out, ids_out)


def rasterise(
    vertices: Floats,
    triangles: Ints,
    offsets: Floats,
    near: float,
    keys_out: Keys,
    ids_out: Ints,
    n_bands: int = BANDS,
) -> None:
    """Draw all triangles.

    Parameters
    ----------
    vertices : (n, 4) float64, rows (X, Y, W, K), as above
    triangles : (m, 3) int32
    offsets : (s, 2) float64, places of the samples in a pixel
    near : W below which nothing is seen
    keys_out : (height, width, s) float32, overwritten; -inf where nothing is seen
    ids_out : (height, width, s) int32, overwritten: the triangle seen, or NOTHING; of length 0 where only keys are
        wanted, as for shadow maps
    n_bands : jobs, for as many threads at most; the result does not depend on it
    """
    run_bands(
        lambda top, bottom: _rasterise_band(vertices, triangles, top, bottom, offsets, near, keys_out, ids_out),
        len(keys_out),
        n_bands,
    )
