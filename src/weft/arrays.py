"""Array types used everywhere, and the casts at the public border.

Kernels trust what they get: contiguous float64 `(n, 3)` positions and int32 indices. The functions here make that
true once, in the Python wrapper, and name what is wrong where it is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.errors import WeftError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Lanes = npt.NDArray[Any]  # rows of four, float32 or float64: see `weft.linear.lanes`
NO_FLOATS: Floats = np.zeros(0)


def as_positions(values: npt.ArrayLike, name: str = "positions") -> Floats:
    """Cast to contiguous `(n, 3) float64` and refuse anything that is not finite."""
    try:
        x = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise WeftError(f"{name}: expected an (n, 3) array of numbers") from None
    if x.ndim != 2 or x.shape[1] != 3:
        raise WeftError(f"{name}: expected shape (n, 3), got {x.shape}")
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise WeftError(f"{name}: vertex {int(np.argmax(bad))} is NaN or infinite")
    return x


def as_indices(values: npt.ArrayLike, n_vertices: int, columns: int = 3, name: str = "triangles") -> Ints:
    """Cast to contiguous `(m, columns) int32` and refuse an index that names no vertex."""
    raw = np.asarray(values)
    if raw.size == 0:
        raw = raw.reshape(0, columns).astype(np.int32)
    if raw.ndim != 2 or raw.shape[1] != columns:
        raise WeftError(f"{name}: expected shape (m, {columns}), got {raw.shape}")
    if raw.dtype.kind not in "iu":
        raise WeftError(f"{name}: expected whole numbers, got {raw.dtype}")
    bad = ((raw < 0) | (raw >= n_vertices)).any(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        known = f"are {n_vertices} vertices (0 to {n_vertices - 1})" if n_vertices > 0 else "is no vertex"
        raise WeftError(f"{name}: row {i} is {raw[i].tolist()}, but there {known}")
    return np.ascontiguousarray(raw, dtype=np.int32)
