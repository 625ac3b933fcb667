"""Animated WebP, one frame at a time.

Pillow gathers all frames of an animation before it writes the first, 2.8 MB each at 960 x 720. Here every frame is
compressed as it comes, only where it differs from the one before, and put into the container by hand ("WebP container
specification", developers.google.com/speed/webp/docs/riff_container).
"""

from __future__ import annotations

import io
from typing import BinaryIO

from PIL import Image

from weft.arrays import Bytes
from weft.render.frames import changed_box

TICKS = 1000  # a second
FASTEST = 60.0  # frames a second; players slow down what asks for less than about 10 ms
QUALITY = 90
EFFORT = 4
NO_BLEND = 2  # flag: the frame's pixels replace what is there
ANIMATED = 2  # flag of the whole file


class WebpWriter:
    """Writes an animation that repeats forever into a binary file."""

    def __init__(self, file: BinaryIO, width: int, height: int) -> None:
        self._file = file
        self._last: Bytes | None = None
        file.write(b"RIFF" + bytes(4) + b"WEBP")
        canvas = bytes([ANIMATED, 0, 0, 0]) + _three_bytes(width - 1) + _three_bytes(height - 1)
        file.write(_chunk(b"VP8X", canvas))
        file.write(_chunk(b"ANIM", bytes(6)))  # background colour 0, repeat without end

    def add(self, image: Bytes, duration: int) -> None:
        """Show `image` for `duration` ticks."""
        left, top, right, bottom = changed_box(self._last, image)
        left, top = left - left % 2, top - top % 2  # the container counts offsets in steps of two pixels
        self._last = image
        packed = io.BytesIO()
        part = Image.fromarray(image[top:bottom, left:right])
        part.save(packed, "WEBP", quality=QUALITY, method=EFFORT)
        place = _three_bytes(left // 2) + _three_bytes(top // 2)
        extent = _three_bytes(right - left - 1) + _three_bytes(bottom - top - 1)
        header = place + extent + _three_bytes(duration) + bytes([NO_BLEND])
        self._file.write(
            _chunk(b"ANMF", header + packed.getvalue()[12:])
        )  # without the RIFF header of a single picture

    def finish(self) -> None:
        """Write the length, which stands at the beginning."""
        length = self._file.tell() - 8
        self._file.seek(4)
        self._file.write(length.to_bytes(4, "little"))

    def close(self) -> None:
        """Nothing is held."""


def _three_bytes(value: int) -> bytes:
    return int(value).to_bytes(3, "little")


def _chunk(name: bytes, content: bytes) -> bytes:
    """A named chunk, padded to an even length."""
    return name + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)
