"""Whole pictures: sides, shadows, ground, heat, and that nothing depends on the threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.render.shapes import box, sphere

from weft.errors import WeftError
from weft.geometry.mesh import build_grid
from weft.render import jobs, lights, rasteriser, shading
from weft.render.camera import Framing, look_at
from weft.render.colours import body_colour, cloth_colours, heat_colours, to_oklab, to_srgb
from weft.render.picture import BODY_CREASE, HeatScale, Surface, draw, key_direction
from weft.render.shading import BACKDROP_BOTTOM, BACKDROP_TOP

SIZE = (160, 120)
RED, BLUE = (0.8, 0.2, 0.2), (0.2, 0.3, 0.8)


def sheet(size=1.0, n=9, height=0.0):
    mesh = build_grid((size, size), (n, n))
    return mesh.positions + np.array([0.0, 0.0, height]), mesh.triangles


def body(shape, colour=None):
    return Surface(*shape, colour or body_colour(0), crease=BODY_CREASE)


def pixel(camera, point, size=SIZE):
    x, y, w = camera.project(np.array([point], float), size)[0]
    return int(y / w), int(x / w)


def brightness(image):
    return np.asarray(image, float).mean(axis=-1)


def table_scene():
    x, triangles = sheet(1.0, 17, 0.5)
    x[:, 2] += 0.05 * np.sin(7 * x[:, 0]) * np.cos(5 * x[:, 1])
    front, back = cloth_colours(0)
    return [Surface(x, triangles, front, back), body(box((0.5, 0.5, 0.4), (0, 0, 0.2)))]


def test_the_two_sides_of_cloth_have_their_colours():
    x, triangles = sheet()
    camera = look_at((0.5, -1.5, 2.0), (0.0, 0.0, 0.0))
    front = draw([Surface(x, triangles, RED, BLUE)], camera, SIZE)[60, 80].astype(int)
    back = draw([Surface(x, triangles[:, ::-1], RED, BLUE)], camera, SIZE)[60, 80].astype(int)
    assert front[0] > front[2] + 60
    assert back[2] > back[0] + 60


def test_a_surface_without_a_back_colour_has_one_colour():
    x, triangles = sheet()
    camera = look_at((0.5, -1.5, 2.0), (0.0, 0.0, 0.0))
    one = draw([Surface(x, triangles, RED)], camera, SIZE)
    other = draw([Surface(x, triangles[:, ::-1], RED)], camera, SIZE)
    assert np.abs(one.astype(int) - other).max() <= 1


def test_the_front_is_the_side_that_faces_the_light_from_above():
    x, triangles = sheet()
    above = look_at((0.5, -1.5, 2.0), (0.0, 0.0, 0.0))
    below = look_at((0.5, -1.5, -2.0), (0.0, 0.0, 0.0))
    surfaces = [Surface(x, triangles, RED)]
    assert brightness(draw(surfaces, above, SIZE)[60, 80]) > 1.5 * brightness(draw(surfaces, below, SIZE)[60, 80])


def test_cloth_throws_a_shadow_on_the_ground():
    camera = look_at((1.0, -4.0, 3.0), (0.0, 0.0, 0.3))
    light = key_direction(camera)
    x, triangles = sheet(0.6, 9, 0.8)
    under = -light * 0.8 / light[2]
    row, column = pixel(camera, (under[0], under[1], 0.0))
    bare = draw([], camera, SIZE, ground_height=0.0)
    shaded = draw([Surface(x, triangles, RED)], camera, SIZE, ground_height=0.0)
    assert brightness(shaded[row, column]) < 0.75 * brightness(bare[row, column])
    away = pixel(camera, (-under[0], -under[1], 0.0))
    assert np.abs(shaded[away].astype(int) - bare[away]).max() <= 12  # it sees a little less of the sky


def test_cloth_throws_a_shadow_on_a_body():
    camera = look_at((1.0, -4.0, 3.0), (0.0, 0.0, 0.3))
    light = key_direction(camera)
    block = body(box((3.0, 3.0, 0.4), (0.0, 0.0, -0.2)))
    x, triangles = sheet(0.6, 9, 0.6)
    under = -light * 0.6 / light[2]
    row, column = pixel(camera, (under[0], under[1], 0.0))
    bare, shaded = draw([block], camera, SIZE), draw([block, Surface(x, triangles, RED)], camera, SIZE)
    assert brightness(shaded[row, column]) < 0.75 * brightness(bare[row, column])


def test_a_fold_throws_a_shadow_on_the_cloth_below_it():
    camera = look_at((1.0, -4.0, 3.0), (0.0, 0.0, 0.1))
    light = key_direction(camera)
    low, triangles = sheet(2.0, 21, 0.0)
    high, _ = sheet(0.4, 21, 0.6)
    both = Surface(np.vstack([low, high]), np.vstack([triangles, triangles + len(low)]), RED)
    under = -light * 0.6 / light[2]
    shade = pixel(camera, (under[0], under[1], 0.0))
    bare, shaded = draw([Surface(low, triangles, RED)], camera, SIZE), draw([both], camera, SIZE)
    assert brightness(shaded[shade]) < 0.75 * brightness(bare[shade])


def test_a_shadow_is_soft_far_from_its_edge_and_sharp_near_it():
    """Along a line across the shadow's edge, the half shade grows with the height of what throws it."""

    def width_of_half_shade(height):
        camera = look_at((0.0, -0.5, 6.0), (0.0, 0.0, 0.0), field_of_view=20.0)
        light = key_direction(camera)
        x, triangles = sheet(0.5, 9, height)
        x[:, :2] += 0.4 * light[:2] * height / light[2]  # the shadow's edge stays in the picture
        image = draw([Surface(x, triangles, RED)], camera, (640, 480), ground_height=0.0)
        bare = draw([], camera, (640, 480), ground_height=0.0)
        share = (brightness(image) / brightness(bare)).ravel()
        return ((share > 0.70) & (share < 0.92)).sum()

    assert width_of_half_shade(0.6) > 2 * width_of_half_shade(0.06)


def wavy_sheet():
    x, triangles = sheet(2.0, 81)
    x[:, 2] = 0.02 * np.sin(9 * x[:, 0] + 4 * x[:, 1])
    return x, triangles


@pytest.mark.parametrize(
    ("surface", "radius"),
    [
        (body(sphere(0.5, (0, 0, 0), 24), (0.7, 0.7, 0.7)), 0.34),
        (Surface(*sphere(0.5, (0, 0, 0), 8), (0.7, 0.7, 0.7)), 0.34),  # few facets, which must not shade one another
        (Surface(*wavy_sheet(), (0.7, 0.7, 0.7)), 0.27),
    ],
)
def test_smooth_things_are_lit_without_acne(surface, radius):
    """Between neighbouring pixels inside a smooth surface, light changes evenly."""
    camera = look_at((1.0, -3.0, 1.6), (0.0, 0.0, 0.0))
    image = brightness(draw([surface], camera, (320, 240)))
    row, column = np.mgrid[:240, :320]
    reach = radius / camera.focus * camera.focal_length(240)
    inside = (row - 120) ** 2 + (column - 160) ** 2 < reach**2
    bends = np.abs(image[:, 2:] - 2 * image[:, 1:-1] + image[:, :-2])[inside[:, 1:-1]]
    assert bends.max() < 2.3
    assert np.ptp(image[inside]) > 12.0  # it is lit from a side


def test_the_faces_of_a_box_are_flat_and_differ():
    camera = look_at((1.6, -2.4, 1.8), (0.0, 0.0, 0.0))
    image = brightness(draw([body(box((1, 1, 1), (0, 0, 0)))], camera, SIZE))
    faces = [pixel(camera, point) for point in ((0, 0, 0.5), (0, -0.5, 0), (0.5, 0, 0))]
    tones = []
    for row, column in faces:
        patch = image[row - 4 : row + 5, column - 4 : column + 5]
        assert np.ptp(patch) < 4.0
        tones.append(patch.mean())
    assert min(abs(a - b) for a, b in [(tones[0], tones[1]), (tones[1], tones[2]), (tones[0], tones[2])]) > 12.0


def test_a_crease_of_nothing_keeps_the_normals_of_triangles():
    camera = look_at((1.0, -1.5, 1.0), (0.0, 0.0, 0.0))
    shape = box((0.6, 0.6, 0.6), (0, 0, 0))
    sharp, usual = (draw([Surface(*shape, RED, crease=crease)], camera, SIZE) for crease in (0.0, BODY_CREASE))
    np.testing.assert_array_equal(sharp, usual)


def test_nearer_things_hide_farther_ones():
    camera = look_at((0.0, -4.0, 0.5), (0.0, 0.0, 0.5))
    near, far = body(box((0.4, 0.4, 0.4), (0, -1, 0.5)), RED), body(box((2, 0.2, 2), (0, 1, 0.5)), BLUE)
    for surfaces in ([near, far], [far, near]):
        image = draw(surfaces, camera, SIZE).astype(int)
        assert image[60, 80, 0] > image[60, 80, 2] + 40
        assert image[60, 40, 2] > image[60, 40, 0] + 20


def test_the_ground_hides_what_is_below_it():
    camera = look_at((0.0, -4.0, 2.0), (0.0, 0.0, 0.0))
    sunk = body(box((0.6, 0.6, 0.6), (0.0, 0.0, -0.5)), RED)
    assert draw([sunk], camera, SIZE)[60, 80, 0] > 100
    hidden = draw([sunk], camera, SIZE, ground_height=0.0).astype(int)
    assert np.ptp(hidden[60, 80]) < 20  # grey
    from_below = look_at((0.0, -4.0, -2.0), (0.0, 0.0, -0.5))
    seen = draw([sunk], from_below, SIZE, ground_height=0.0).astype(int)
    assert seen[60, 80, 0] > seen[60, 80, 2] + 40  # the floor is drawn only from above


def test_the_ground_fades_without_a_horizon():
    camera = look_at((0.0, -5.0, 1.0), (0.0, 0.0, 0.5), field_of_view=50.0)
    image = brightness(draw([], camera, SIZE, ground_height=0.0))
    assert np.abs(np.diff(image, axis=0)).max() < 6.0


def test_scenery_takes_shadows_throws_none_and_fades():
    camera = look_at((1.0, -4.0, 3.0), (0.0, 0.0, 0.2))
    light = key_direction(camera)
    plane = np.array([(-40, -40, 0), (40, -40, 0), (40, 40, 0), (-40, 40, 0)], float)
    quad = np.array([(0, 1, 2), (0, 2, 3)])
    x, triangles = sheet(0.6, 9, 0.6)
    board = Surface(plane, quad, body_colour(0), crease=BODY_CREASE, scenery=True)
    bare, shaded = draw([board], camera, SIZE), draw([board, Surface(x, triangles, RED)], camera, SIZE)
    under = -light * 0.6 / light[2]
    shade = pixel(camera, (under[0], under[1], 0.0))
    assert brightness(shaded[shade]) < 0.75 * brightness(bare[shade])
    level = look_at((0.0, -4.0, 1.0), (0.0, 0.0, 0.5), field_of_view=50.0)
    assert np.abs(np.diff(brightness(draw([board], level, SIZE)), axis=0)).max() < 9.0
    roof = Surface(plane + np.array([0.0, 0.0, 2.0]), quad, body_colour(0), crease=BODY_CREASE, scenery=True)
    inside = look_at((1.0, -3.0, 1.8), (0.0, 0.0, 0.2))
    assert (draw([board, roof], inside, SIZE)[80:] == draw([board], inside, SIZE)[80:]).all()


@pytest.mark.parametrize("by", ["vertex", "triangle"])
def test_heat_shows_values_from_cold_to_hot(by):
    x, triangles = sheet(1.0, 21)
    values = x[:, 0] if by == "vertex" else x[triangles].mean(axis=1)[:, 0]
    camera = look_at((0.0, -0.3, 3.0), (0.0, 0.0, 0.0))
    scale = HeatScale(-0.5, 0.5)
    image = draw([Surface(x, triangles, RED, values=values)], camera, (320, 240), heat=scale)
    columns = [pixel(camera, (p, 0, 0), (320, 240))[1] for p in (-0.45, -0.3, -0.15, 0.0, 0.15, 0.3, 0.45)]
    shown = image[120, columns] / 255.0
    assert (np.diff(to_oklab(shown)[:, 0]) > 0.0).all()
    wanted = to_oklab(heat_colours([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]))
    hue = np.arctan2(to_oklab(shown)[:, 2], to_oklab(shown)[:, 1])
    turned = np.angle(np.exp(1j * (hue - np.arctan2(wanted[:, 2], wanted[:, 1]))))
    assert np.abs(turned).max() < 0.25  # light changes the tone of a colour, hardly its hue


def test_values_are_spread_in_perspective():
    """Along one large triangle that runs away from the eye, a value stands where the ray meets it."""
    x = np.array([(-20, -1, 0), (20, -1, 0), (0, 19, 0)], float)
    camera = look_at((0.0, -3.0, 0.8), (0.0, 0.0, 0.0))
    image = draw([Surface(x, [[0, 1, 2]], RED, values=x[:, 1])], camera, (320, 240), heat=HeatScale(-1, 19))
    for y in (0.0, 1.0, 3.0, 7.0):
        shown = to_oklab(image[pixel(camera, (0, y, 0), (320, 240))] / 255.0)
        hues = np.array([np.arctan2(b, a) for _, a, b in to_oklab(heat_colours(np.linspace(0, 1, 400)))])
        found = np.linspace(-1, 19, 400)[np.argmin(np.abs(hues - np.arctan2(shown[2], shown[1])))]
        assert found == pytest.approx(y, abs=0.8)


def test_the_scale_of_heat_may_be_left_to_the_values():
    x, triangles = sheet(1.0, 9)
    camera = look_at((0.0, -0.3, 3.0), (0.0, 0.0, 0.0))
    own = draw([Surface(x, triangles, RED, values=5.0 + x[:, 0])], camera, SIZE)
    given = draw([Surface(x, triangles, RED, values=5.0 + x[:, 0])], camera, SIZE, heat=HeatScale(4.5, 5.5))
    assert (own == given).all()
    same = draw([Surface(x, triangles, RED, values=np.full(len(x), 2.0))], camera, SIZE)
    assert same.shape == (120, 160, 3)


def test_a_legend_stands_in_the_corner_of_a_heat_map_only():
    x, triangles = sheet(1.0, 9)
    camera = look_at((0.0, -0.3, 6.0), (0.0, 0.0, 0.0))
    plain = draw([Surface(x, triangles, RED)], camera, SIZE)
    heat = draw([Surface(x, triangles, RED, values=x[:, 0])], camera, SIZE, heat=HeatScale(-1, 1, "stretch"))
    corner = (slice(80, 120), slice(0, 50))
    assert np.abs(plain[corner].astype(int) - heat[corner]).max() > 100
    assert (plain[:40] == heat[:40]).all()
    tiny = draw([Surface(x, triangles, RED, values=x[:, 0])], camera, (60, 40))
    assert tiny.shape == (40, 60, 3)


def test_threads_do_not_change_a_picture(monkeypatch):
    framing = Framing(SIZE)
    surfaces = table_scene()
    for surface in surfaces:
        framing.include(surface.positions)
    camera = framing.camera()
    pictures = []
    for n in (1, 2, 7):
        monkeypatch.setattr(jobs, "threads", lambda n=n: n)
        pictures.append(draw(surfaces, camera, SIZE, ground_height=0.0))
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pictures[2]).all()


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_supersampling_smooths_edges_and_nothing_else(side):
    camera = look_at((0.3, -3.0, 1.0), (0.0, 0.0, 0.0))
    surfaces = [body(box((1, 1, 1), (0, 0, 0)), (0.1, 0.1, 0.1))]
    image = draw(surfaces, camera, SIZE, supersampling=side)
    fine = draw(surfaces, camera, SIZE, supersampling=4)
    assert np.abs(image.astype(int) - fine).mean() < 1.5
    tones = len(np.unique(brightness(image)[60].round()))
    assert tones >= len(np.unique(brightness(draw(surfaces, camera, SIZE, supersampling=1))[60].round()))


def test_an_empty_picture_is_a_backdrop():
    image = draw([], look_at((0, -3, 1), (0, 0, 0)), (33, 17))
    assert image.shape == (17, 33, 3)
    assert image.dtype == np.uint8
    assert (image == image[:, :1]).all()
    middles = (np.arange(17) + 0.5)[:, None] / 17
    wanted = to_srgb(np.array(BACKDROP_TOP) * (1 - middles) + np.array(BACKDROP_BOTTOM) * middles)
    assert np.abs(image[:, 0] / 255.0 - wanted).max() < 0.012  # the brightest are bent a little by the tone curve


def test_odd_geometry_draws_something_sane():
    """Triangles without area, one behind the eye, one through it, one enormous: no NaN turns a pixel black."""
    x = np.array(
        [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, -9, 0), (1, -9, 2), (-2000, 3, -1000), (2000, 3, -1000), (0, 3, 3000)]
    )
    triangles = [(0, 1, 2), (2, 3, 4), (0, 2, 4), (5, 6, 7)]
    camera = look_at((0.2, -3.0, 0.5), (0.0, 0.0, 0.0))
    image = draw([Surface(x, triangles, (0.9, 0.9, 0.9))], camera, SIZE, ground_height=-0.5)
    assert image.min() > 20


def test_kernels_are_compiled_once_whatever_is_drawn():
    x, triangles = sheet(1.0, 3)
    camera = look_at((0, -3, 1), (0, 0, 0))
    draw([], camera, (16, 12))
    draw([], camera, (16, 12), ground_height=0.0)
    draw([Surface(x.tolist(), triangles.astype(np.int64), RED)], camera, (16, 12), supersampling=1)
    draw([Surface(x.astype(np.float32), triangles, RED, values=x[:, 0])], camera, (16, 12), ground_height=-1)
    for kernel in (shading._shade_rows, rasteriser._rasterise_band, lights._update_sky_on_triangles):
        assert len(kernel.signatures) == 1


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_numbers_that_overflow_do_no_harm(scale):
    x, triangles = sheet(1.0, 3)
    camera = look_at((0.2, -3.0, 0.5), (0.0, 0.0, 0.0))
    surfaces = [Surface(x * scale, triangles, RED, values=x[:, 0] * scale), body(sphere(scale, (0, 0, 0), 4))]
    with np.errstate(all="ignore"):
        assert draw(surfaces, camera, SIZE, ground_height=0.0).shape == (120, 160, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": [[0, 0, np.nan]] * 3}, "positions of surface 0"),
        ({"triangles": [[0, 1, 9]]}, "triangles of surface 0"),
        ({"front": (2, 0, 0)}, "front of surface 0"),
        ({"back": (2, 0, 0)}, "back of surface 0"),
        ({"values": [1.0, 2.0]}, "values of surface 0"),
        ({"values": [1.0, 2.0, np.inf]}, "values of surface 0"),
        ({"values": ["a", "b", "c"]}, "values of surface 0"),
        ({"crease": 200.0}, "crease of surface 0"),
    ],
)
def test_bad_surfaces_are_refused(change, message):
    good = {"positions": [[0, 0, 0], [1, 0, 0], [0, 1, 0]], "triangles": [[0, 1, 2]], "front": RED}
    with pytest.raises(WeftError, match=message):
        draw([Surface(**{**good, **change})], look_at((0, -3, 1), (0, 0, 0)), SIZE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 10)}, "size"),
        ({"size": (10, 100_000)}, "size"),
        ({"size": (8000, 8000), "supersampling": 4}, "size"),
        ({"supersampling": 0}, "supersampling"),
        ({"supersampling": 9}, "supersampling"),
        ({"ground_height": np.nan}, "ground_height"),
        ({"heat": HeatScale(1.0, 1.0)}, "heat scale"),
    ],
)
def test_bad_options_are_refused(options, message):
    x, triangles = sheet(1.0, 3)
    with pytest.raises(WeftError, match=message):
        draw([Surface(x, triangles, RED, values=x[:, 0])], look_at((0, -3, 1), (0, 0, 0)), **options)
