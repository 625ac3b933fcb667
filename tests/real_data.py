"""Where the real meshes lie: the folder WEFT_DATA, or `shared/data` beside the checkout. Tests skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("WEFT_DATA") or Path(__file__).parents[1] / "../shared/data")

needs_real_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real meshes in {DATA} (set WEFT_DATA)")
