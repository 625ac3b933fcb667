"""Files: what is written is read back by Pillow, in full, in time, and only when it is whole."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.errors import WeftError
from weft.render.animation import is_animation, write_animation, write_picture
from weft.render.frames import changed_box
from weft.render.gif import choose_palette, compress_lzw

IMAGE = np.zeros((8, 8, 3), np.uint8)


def moving_square(n, size=(64, 48)):
    """A coloured square that moves over a gradient."""
    width, height = size
    base = np.empty((height, width, 3), np.uint8)
    base[:] = np.linspace(150, 220, height, dtype=np.uint8)[:, None, None]
    for k in range(n):
        frame = base.copy()
        frame[10:20, 3 + k : 13 + k] = (180, 60, 50)
        yield frame


def read_back(path):
    """All frames as RGB, and their durations [ms]."""
    images, durations = [], []
    with Image.open(path) as file:
        for k in range(getattr(file, "n_frames", 1)):
            file.seek(k)
            file.load()
            images.append(np.asarray(file.convert("RGB")).astype(int))
            durations.append(file.info["duration"])
    return images, durations


def test_a_picture_comes_back_as_it_was(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    write_picture(tmp_path / "x.png", image)
    with Image.open(tmp_path / "x.png") as file:
        assert file.format == "PNG"
        assert (np.asarray(file) == image).all()
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]


@pytest.mark.parametrize("ending", [".webp", ".gif", ".WEBP"])
@pytest.mark.parametrize(("n", "fps"), [(1, 30.0), (7, 24.0), (12, 30.0), (5, 50.0)])
def test_an_animation_has_all_frames_in_time(tmp_path, ending, n, fps):
    path = tmp_path / f"x{ending}"
    taken = []
    write_animation(path, moving_square(n), fps, taken.append)
    assert taken == list(range(1, n + 1))
    images, durations = read_back(path)
    assert len(images) == n
    assert images[0].shape == (48, 64, 3)
    assert sum(durations) == pytest.approx(1000.0 * n / fps, abs=5.0)  # a gif counts in 10 ms
    for shown, drawn in zip(images, moving_square(n), strict=True):
        assert np.abs(shown - drawn).mean() < 4.0
    with Image.open(path) as file:
        assert file.info["loop"] == 0


@pytest.mark.parametrize(("ending", "shown"), [(".webp", 6), (".gif", 4)])
def test_too_many_frames_a_second_are_thinned_out_and_stay_in_time(tmp_path, ending, shown):
    path = tmp_path / f"x{ending}"
    write_animation(path, moving_square(11), 120.0)
    images, durations = read_back(path)
    assert len(images) == shown
    assert sum(durations) == pytest.approx(1000.0 * 11 / 120.0, abs=5.0)
    last_shown = list(moving_square(11))[:: 2 if ending == ".webp" else 3][-1]
    assert np.abs(images[-1] - last_shown).mean() < 4.0


@pytest.mark.parametrize("ending", [".webp", ".gif"])
def test_what_stands_still_does_not_flicker(tmp_path, ending):
    """Outside the moving part every frame shows the very same pixels; equal frames stay equal."""
    path = tmp_path / f"x{ending}"
    frames = [*moving_square(6), *[list(moving_square(6))[-1]] * 3]
    write_animation(path, frames, 20.0)
    images, durations = read_back(path)
    assert sum(durations) == 450
    for image in images[1:]:
        assert (image[24:] == images[0][24:]).all()
    assert (images[-1] == images[5]).all()


@pytest.mark.parametrize("ending", [".webp", ".gif"])
def test_a_still_animation_is_one_long_frame(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_animation(path, [IMAGE] * 40, 20.0)
    images, durations = read_back(path)
    assert len(images) == 1
    assert durations == [2000]


def test_a_gif_shades_smoothly_without_a_dithering_that_shows(tmp_path):
    ramp = np.zeros((64, 256, 3), np.uint8)
    ramp[..., 0] = np.arange(256)
    ramp[..., 1] = np.arange(256) // 2
    ramp[..., 2] = 90
    write_animation(tmp_path / "x.gif", [ramp], 10.0)
    (image,), _ = read_back(tmp_path / "x.gif")
    assert np.abs(image - ramp).max() <= 12
    assert np.abs(image.mean(axis=0) - ramp.mean(axis=0)).max() < 4.0


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 765, 766, 767, 768, 5000, 60_000])
@pytest.mark.parametrize("kind", ["random", "runs", "constant"])
def test_lzw_is_read_by_another_decoder(n, kind):
    rng = np.random.default_rng(n)
    pixels = {
        "random": lambda: rng.integers(0, 256, n),
        "runs": lambda: np.repeat(rng.integers(0, 6, n // 4 + 1), 4)[:n],
        "constant": lambda: np.full(n, 7),
    }[kind]().astype(np.uint8)
    packed = compress_lzw(pixels)
    blocks = b"".join(bytes([len(packed[k : k + 255])]) + packed[k : k + 255] for k in range(0, len(packed), 255))
    grey = bytes(value for shade in range(256) for value in (shade, shade, shade))
    size = n.to_bytes(2, "little") + b"\x01\x00"
    data = b"GIF89a" + size + b"\xf7\x00\x00" + grey + b"\x2c" + bytes(4) + size + b"\x00\x08" + blocks + b"\x00\x3b"
    with Image.open(io.BytesIO(data)) as file:
        assert (np.asarray(file.convert("L")).ravel() == pixels).all()
    if kind == "constant" and n > 1000:
        assert len(packed) < n / 20


def test_lzw_ends_right_at_every_length():
    """The width of the last code hangs on how full the table is: try each length around the first change."""
    pixels = np.random.default_rng(1).integers(0, 256, 300).astype(np.uint8)
    for n in range(240, 300):
        codes = unpack_codes(compress_lzw(pixels[:n]))
        assert codes[0] == 256
        assert codes[-1] == 257
        assert len(codes) <= n + 2


def unpack_codes(packed):
    """The codes of a GIF stream before the table is full, by a decoder that only counts."""
    bits = int.from_bytes(packed, "little")
    codes, width, entries, at = [], 9, 258, 0
    while not codes or codes[-1] != 257:
        codes.append((bits >> at) & ((1 << width) - 1))
        at += width
        if len(codes) > 2:
            entries += 1
        if entries == 1 << width:
            width += 1
    assert len(packed) == (at + 7) // 8
    return codes


def test_a_palette_keeps_small_bright_things():
    counts = np.zeros(64**3, np.int64)
    counts[(40 * 64 + 40) * 64 + np.arange(30, 50)] = 500_000  # a large grey backdrop
    counts[(60 * 64 + 5) * 64 + 5] = 200  # a little red
    palette = choose_palette(counts).astype(int)
    assert len(palette) <= 255
    assert np.abs(palette - (242, 22, 22)).sum(axis=1).min() < 20


def test_the_changed_box_holds_all_changes():
    before = np.zeros((10, 12, 3), np.uint8)
    after = before.copy()
    assert changed_box(None, after) == (0, 0, 12, 10)
    assert changed_box(before, after) == (0, 0, 1, 1)
    after[3, 4, 2] = after[7, 9, 0] = 1
    assert changed_box(before, after) == (4, 3, 10, 8)
    assert changed_box(before[..., 0], after[..., 0]) == (9, 7, 10, 8)


@pytest.mark.parametrize("ending", [".webp", ".gif"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"old")

    def failing():
        yield from moving_square(3)
        raise WeftError("the recording ends here")

    with pytest.raises(WeftError, match="ends here"):
        write_animation(path, failing(), 30.0)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_kill_leaves_no_half_file(tmp_path):
    script = f"""
import os, signal, numpy as np
from weft.render.animation import write_animation
def frames():
    for k in range(9):
        if k == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        yield np.full((32, 32, 3), 20 * k, np.uint8)
write_animation({str(tmp_path / "x.webp")!r}, frames(), 30.0)
"""
    src = Path(__file__).parents[2] / "src"
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(src)}, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "x.webp").exists()
    write_animation(tmp_path / "x.webp", moving_square(2), 30.0)  # what is left does not stand in the way
    assert len(read_back(tmp_path / "x.webp")[0]) == 2


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda folder: write_picture(folder / "x.bmp", IMAGE), r"\.png.*\.webp, \.gif"),
        (lambda folder: write_picture(folder / "x", IMAGE), r"without an ending"),
        (lambda folder: write_picture(folder / "x.gif", IMAGE), r"animation; use \.png"),
        (lambda folder: write_animation(folder / "x.mov", [IMAGE], 30), r"\.png.*\.webp, \.gif"),
        (lambda folder: write_animation(folder / "x.png", [IMAGE], 30), r"picture; use \.webp, \.gif"),
        (lambda folder: write_animation(folder / "x.webp", [], 30), "no frames"),
        (lambda folder: write_animation(folder / "x.webp", [IMAGE], 0), "fps"),
        (lambda folder: write_animation(folder / "x.webp", [IMAGE], 1e9), "fps"),
        (lambda folder: write_animation(folder / "x.webp", [IMAGE], float("nan")), "fps"),
        (lambda folder: write_animation(folder / "x.webp", [IMAGE, IMAGE[:4]], 30), "8 x 8 as before, got 8 x 4"),
        (lambda folder: write_picture(folder / "x.png", IMAGE.astype(float)), "uint8, got float64"),
        (lambda folder: write_picture(folder / "x.png", IMAGE[..., 0]), "uint8, got uint8"),
        (lambda folder: write_picture(folder / "x.png", "cloth"), "got str"),
        (lambda folder: write_picture(folder / "no" / "x.png", IMAGE), "cannot be written"),
    ],
)
def test_bad_requests_are_refused_in_one_line(tmp_path, write, message):
    with pytest.raises(WeftError, match=message) as caught:
        write(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_endings_tell_pictures_from_animations():
    assert is_animation("a/b.GIF")
    assert is_animation(Path("x.webp"))
    assert not is_animation("x.png")


def test_placing_a_camera_and_writing_files_do_not_load_numba():
    script = (
        "import sys, weft.render.animation, weft.render.camera, weft.render.colours; sys.exit('numba' in sys.modules)"
    )
    src = Path(__file__).parents[2] / "src"
    assert subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(src)}, check=False).returncode == 0
