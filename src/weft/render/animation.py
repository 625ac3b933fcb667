"""Pictures and animations in files: png, and animated webp and gif.

A file appears under its name only when it is whole: it is written beside it and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from PIL import Image

from weft.arrays import Bytes
from weft.errors import WeftError

PICTURE_ENDINGS = (".png",)
ANIMATION_ENDINGS = (".webp", ".gif")
LONGEST = 30_000  # ticks that equal frames are shown as one; a gif can count to 65,535


class AnimationWriter(Protocol):
    """Packs frames, in order, into one file: `add` each, `finish`, and `close` whatever happened."""

    def add(self, image: Bytes, duration: int) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...


def is_animation(path: Path | str) -> bool:
    """Whether a file name asks for an animation rather than a picture; refuses what is neither."""
    ending = Path(path).suffix.lower()
    if ending not in PICTURE_ENDINGS + ANIMATION_ENDINGS:
        raise WeftError(
            f"{path}: cannot write {ending or 'a file without an ending'!r}; "
            f"use {', '.join(PICTURE_ENDINGS)} for a picture or {', '.join(ANIMATION_ENDINGS)} for an animation"
        )
    return ending in ANIMATION_ENDINGS


def write_picture(path: Path | str, image: Bytes) -> None:
    """Write a picture, `(height, width, 3) uint8`, as png."""
    if is_animation(path):
        raise WeftError(f"{path}: is the name of an animation; use {', '.join(PICTURE_ENDINGS)} for a picture")
    picture = Image.fromarray(_check_image(image, None))
    with _replacing(Path(path)) as file:
        picture.save(file, "PNG")


def write_animation(
    path: Path | str, frames: Iterable[Bytes], fps: float, progress: Callable[[int], None] | None = None
) -> None:
    """Write frames, `(height, width, 3) uint8` each, as an animation that repeats.

    The frames are taken one by one and not kept. The animation lasts as long as the frames do: where the format cannot
    show so many a second (60 in webp, 50 in gif), every second or third one is shown, and a frame equal to the one
    before lengthens it.

    Parameters
    ----------
    fps : frames a second, 0.1 to 1000
    progress : called with the number of frames taken so far, after each
    """
    if not is_animation(path):
        raise WeftError(f"{path}: is the name of a picture; use {', '.join(ANIMATION_ENDINGS)} for an animation")
    if not 0.1 <= fps <= 1000.0:
        raise WeftError(f"fps: expected 0.1 to 1000 frames a second, got {fps:g}")
    build, ticks, fastest = _format(Path(path).suffix.lower())
    with _replacing(Path(path)) as file:
        timed = _timed(frames, ticks / fps, int(np.ceil(fps / fastest - 1e-9)), progress or (lambda count: None))
        writer: AnimationWriter | None = None
        try:
            for image, duration in timed:
                writer = writer or build(file, image.shape[1], image.shape[0])
                writer.add(image, duration)
            if writer is None:
                raise WeftError(f"{path}: there are no frames to write")
            writer.finish()
        finally:
            if writer is not None:
                writer.close()


def _timed(
    frames: Iterable[Bytes], ticks_a_frame: float, stride: int, progress: Callable[[int], None]
) -> Iterator[tuple[Bytes, int]]:
    """Each frame to be shown, and for how many ticks.

    The ends are rounded, not the lengths, so that the whole stays in time.
    """
    first, shown, count = 0, None, 0
    for count, frame in enumerate(frames, start=1):
        image = _check_image(frame, None if shown is None else shown.shape)
        start = count - 1
        if shown is None:
            shown = image
        elif start % stride == 0:
            is_long = (start - first) * ticks_a_frame > LONGEST
            if is_long or not np.array_equal(image, shown):
                yield shown, round(start * ticks_a_frame) - round(first * ticks_a_frame)
                first, shown = start, image
        progress(count)
    if shown is not None:
        yield shown, max(1, round(count * ticks_a_frame) - round(first * ticks_a_frame))


def _format(ending: str) -> tuple[Callable[[BinaryIO, int, int], AnimationWriter], int, float]:
    """The writer of a format, its ticks a second and its most frames a second."""
    if ending == ".webp":
        from weft.render import webp

        return webp.WebpWriter, webp.TICKS, webp.FASTEST
    from weft.render import gif  # imports numba

    return gif.GifWriter, gif.TICKS, gif.FASTEST


def _check_image(image: Bytes, shape: tuple[int, ...] | None) -> Bytes:
    """Refuse what is not a picture, or has not the shape of those before."""
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        kind = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise WeftError(f"image: expected (height, width, 3) uint8, got {kind}")
    if shape is not None and image.shape != shape:
        raise WeftError(f"image: expected {shape[1]} x {shape[0]} as before, got {image.shape[1]} x {image.shape[0]}")
    return np.ascontiguousarray(image)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when all went well, and leaves no trace when not."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        file = partial.open("wb")
    except OSError as error:
        raise WeftError(f"{path}: cannot be written ({error.strerror})") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise WeftError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        partial.unlink(missing_ok=True)
