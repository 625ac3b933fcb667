"""Animated GIF with one palette for the whole animation.

A palette a frame would make still cloth flicker, so the frames wait, compressed, in a temporary file until the colours
of all of them have been counted. Ordered dithering hangs on the pixel alone: what does not move does not change. Where
a pixel keeps its colour it is left transparent, which packs well.
"""

from __future__ import annotations

import tempfile
import zlib
from typing import BinaryIO

import numpy as np
from PIL import Image

from weft.arrays import Bytes, Floats, Ints, Longs
from weft.jit import kernel
from weft.render.frames import changed_box

TICKS = 100  # a second
FASTEST = 50.0  # frames a second; players slow down what asks for less than 2 ticks
N_COLOURS = 255
KEEP = 255  # the transparent colour: what was there stays
SHADES = 64  # steps a channel in which colours are counted and looked up
DITHER = 5.0  # width of the ordered dither, of 255
SAMPLE_PIXELS = 400_000  # that stand for the whole animation when the palette is chosen
MOST_CODES = 4096
CLEAR, END = 256, 257


class GifWriter:
    """Writes an animation that repeats forever into a binary file; nothing is there before `finish`."""

    def __init__(self, file: BinaryIO, width: int, height: int) -> None:
        self._file = file
        self._shape = (height, width, 3)
        self._frames = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close
        self._sizes: list[tuple[int, int]] = []
        self._counts = np.zeros(SHADES**3, np.int64)

    def add(self, image: Bytes, duration: int) -> None:
        """Show `image` for `duration` ticks."""
        packed = zlib.compress(image.tobytes(), 1)
        self._frames.write(packed)
        self._sizes.append((len(packed), duration))
        self._counts += np.bincount(_shade_numbers(image).ravel(), minlength=SHADES**3)

    def finish(self) -> None:
        """Choose the palette and write all frames."""
        height, width, _ = self._shape
        palette = choose_palette(self._counts)
        nearest = nearest_colours(palette)
        dither = np.tile(_bayer(), (height // 8 + 1, width // 8 + 1))[:height, :width, None]
        self._file.write(b"GIF89a" + _two_bytes(width) + _two_bytes(height) + bytes([0b11110111, 0, 0]))
        self._file.write(palette.tobytes() + bytes(3 * (256 - len(palette))))
        self._file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
        self._frames.seek(0)
        last: Bytes | None = None
        for size, duration in self._sizes:
            image = np.frombuffer(zlib.decompress(self._frames.read(size)), np.uint8).reshape(self._shape)
            dithered = np.clip(image + dither, 0.0, 255.0).astype(np.uint8)
            colours = nearest[_shade_numbers(dithered)]
            self._file.write(_frame(last, colours, duration))
            last = colours
        self._file.write(b"\x3b")

    def close(self) -> None:
        """Give back the temporary file."""
        self._frames.close()


def _frame(last: Bytes | None, colours: Bytes, duration: int) -> bytes:
    """One frame: what has changed since the last one."""
    left, top, right, bottom = changed_box(last, colours)
    part = colours[top:bottom, left:right]
    if last is not None:
        part = np.where(part == last[top:bottom, left:right], np.uint8(KEEP), part)
    control = b"\x21\xf9\x04" + bytes([0b00000101]) + _two_bytes(duration) + bytes([KEEP, 0])
    place = b"\x2c" + b"".join(_two_bytes(value) for value in (left, top, right - left, bottom - top)) + b"\x00"
    packed = compress_lzw(np.ascontiguousarray(part).ravel())
    blocks = b"".join(bytes([len(packed[k : k + 255])]) + packed[k : k + 255] for k in range(0, len(packed), 255))
    return control + place + b"\x08" + blocks + b"\x00"


def choose_palette(counts: Longs) -> Bytes:
    """`(n, 3)`, n <= N_COLOURS, colours for a picture with so many pixels of each shade, by median cut.

    A shade counts by the root of its number of pixels: a large backdrop must not take the colours of the cloth.
    """
    used = np.flatnonzero(counts)
    weights = np.sqrt(counts[used])
    repeats = np.maximum(1, np.floor(weights * (SAMPLE_PIXELS / weights.sum()))).astype(np.int64)
    step = 256 // SHADES
    shades = np.stack(np.unravel_index(used, (SHADES, SHADES, SHADES)), axis=1) * step + step // 2
    sample = np.repeat(shades.astype(np.uint8), repeats, axis=0)[None]
    reduced = Image.fromarray(sample).quantize(N_COLOURS, Image.Quantize.MEDIANCUT, kmeans=2)
    palette = np.array(reduced.getpalette(), np.uint8).reshape(-1, 3)
    return palette[: int(np.asarray(reduced).max()) + 1]


def nearest_colours(palette: Bytes) -> Bytes:
    """`(SHADES ** 3,)`: the number of the colour nearest to each shade."""
    step = 256 // SHADES
    axis = np.arange(SHADES, dtype=np.float32) * step + step // 2
    weights = np.array([0.55, 1.0, 0.35], np.float32)  # the eye sees green best and blue least
    colours = palette.astype(np.float32) * weights
    out = np.empty((SHADES, SHADES * SHADES), np.uint8)
    green, blue = np.meshgrid(axis * weights[1], axis * weights[2], indexing="ij")
    for red in range(SHADES):
        shades = np.stack([np.full(green.size, axis[red] * weights[0]), green.ravel(), blue.ravel()], axis=1)
        # |s - c|^2 without |s|^2, which is the same for all colours
        out[red] = ((colours**2).sum(axis=1) - 2.0 * shades @ colours.T).argmin(axis=1)
    return out.ravel()


def _shade_numbers(image: Bytes) -> Ints:
    step = 256 // SHADES
    parts = (image // step).astype(np.int32)
    return np.asarray((parts[..., 0] * SHADES + parts[..., 1]) * SHADES + parts[..., 2], np.int32)


def _bayer() -> Floats:
    """The 8 x 8 ordered dither, from -DITHER / 2 to DITHER / 2."""
    order = np.zeros((1, 1))
    for _ in range(3):
        order = np.block([[4 * order, 4 * order + 2], [4 * order + 3, 4 * order + 1]])
    return DITHER * ((order + 0.5) / 64.0 - 0.5)


def _two_bytes(value: int) -> bytes:
    return int(value).to_bytes(2, "little")


@kernel
def _update_lzw(pixels: Bytes, children: Ints, out: Bytes) -> int:
    """Pack pixels with variable-length codes of 9 to 12 bits, the first bit lowest; return the number of bytes."""
    children[:] = 0
    bits, n_bits, n_bytes = CLEAR, 9, 0
    width, next_code = 9, END + 1
    prefix = -1
    for i in range(len(pixels)):
        pixel = pixels[i]
        if prefix >= 0 and children[prefix, pixel] > 0:
            prefix = children[prefix, pixel]
            continue
        if prefix >= 0:
            bits |= prefix << n_bits
            n_bits += width
            if next_code < MOST_CODES:
                children[prefix, pixel] = next_code
                if next_code == 1 << width:
                    width += 1
                next_code += 1
            else:
                bits |= CLEAR << n_bits
                n_bits += width
                children[:] = 0
                width, next_code = 9, END + 1
            while n_bits >= 8:
                out[n_bytes] = bits & 255
                n_bytes, bits, n_bits = n_bytes + 1, bits >> 8, n_bits - 8
        prefix = int(pixel)
    if prefix >= 0:
        bits |= prefix << n_bits
        n_bits += width
    # Where a decoder by now expects one bit more, it reads a zero: codes change their width at whole bytes.
    bits |= END << n_bits
    n_bits += width
    while n_bits > 0:
        out[n_bytes] = bits & 255
        n_bytes, bits, n_bits = n_bytes + 1, bits >> 8, n_bits - 8
    return n_bytes


def compress_lzw(pixels: Bytes) -> bytes:
    """The LZW code of GIF (CompuServe 1990, "GIF89a specification", appendix F), for 8-bit pixels."""
    children = np.zeros((MOST_CODES, 256), np.int32)
    out = np.empty(2 * len(pixels) + 16, np.uint8)
    return out[: _update_lzw(pixels, children, out)].tobytes()
