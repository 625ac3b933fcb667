"""The shell: measured stiffness in, measured stiffness out, on any mesh."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve
from scipy.spatial.transform import Rotation
from tests.families.test_models import forces, jacobians

from weft.geometry.mesh import Mesh, build_grid, check_mesh
from weft.jit import set_threads
from weft.lab.samples import build_unstructured, turned_material
from weft.lab.statics import all_blocks
from weft.models.fabrics import load_fabric
from weft.models.shell import Shell, ShellParameters

COTTON = load_fabric("cotton").model_copy(update={"damping": 0.0})
LIMP = COTTON.model_copy(update={"bending_warp": 0.0, "bending_weft": 0.0})
LOOSE = COTTON.model_copy(update={"stretch_warp": 1e-9, "stretch_weft": 1e-9, "shear": 0.0})
MESHES = {
    "grid": build_grid((0.3, 0.2), (13, 9)),
    "fine": build_grid((0.3, 0.2), (31, 21)),
    "unstructured": build_unstructured((0.3, 0.2), 0.02),
}


@pytest.fixture(params=MESHES)
def mesh(request):
    return MESHES[request.param]


def strained(mesh, uu, uv, vv):
    """Positions whose Green's strain is given."""
    target = np.array([[1 + 2 * uu, 2 * uv], [2 * uv, 1 + 2 * vv]])
    values, vectors = np.linalg.eigh(target)
    stretch = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    x = mesh.positions.copy()
    x[:, :2] = x[:, :2] @ stretch
    return x


def test_membrane_energy_is_that_of_the_measured_stiffness(mesh):
    """A pull along the warp with free sides: 1/2 Y e^2, whatever Poisson's ratio; shear: 1/2 G (2 e_uv)^2."""
    model = Shell(mesh, LIMP)
    e = 0.03
    across = -COTTON.poisson * np.sqrt(COTTON.stretch_warp / COTTON.stretch_weft) * e
    assert model.energy(strained(mesh, across, 0, e)) == pytest.approx(
        0.5 * COTTON.stretch_warp * e**2 * 0.06, rel=1e-9
    )
    across = -COTTON.poisson * np.sqrt(COTTON.stretch_weft / COTTON.stretch_warp) * e
    assert model.energy(strained(mesh, e, 0, across)) == pytest.approx(
        0.5 * COTTON.stretch_weft * e**2 * 0.06, rel=1e-9
    )
    assert model.energy(strained(mesh, 0, e, 0)) == pytest.approx(0.5 * COTTON.shear * (2 * e) ** 2 * 0.06, rel=1e-9)


@pytest.mark.parametrize("degrees", [0.0, 30.0, 45.0, 90.0, 135.0])
def test_a_cylinder_stores_a_plates_energy_in_every_direction(degrees):
    """Rolled at an angle to the weft, on a grid cut along one diagonal; the border rows have no hinge beyond them."""
    size, vertices = (0.2, 0.2), (41, 41)
    mesh = build_grid(size, vertices)
    model = Shell(mesh, LOOSE)
    angle, radius = np.deg2rad(degrees), 0.1
    along = mesh.positions[:, :2] @ [np.cos(angle), np.sin(angle)]
    across = mesh.positions[:, :2] @ [-np.sin(angle), np.cos(angle)]
    x = np.stack([radius * np.sin(along / radius), across, radius * (1 - np.cos(along / radius))], axis=1)
    rigidity = (
        np.sqrt(LOOSE.bending_weft) * np.cos(angle) ** 2 + np.sqrt(LOOSE.bending_warp) * np.sin(angle) ** 2
    ) ** 2
    assert model.energy(x) == pytest.approx(0.5 * rigidity / radius**2 * 0.04, rel=0.05)


def tip_over_beam(mesh, fabric, length, width, clamped_to, rigidity):
    """Sink of a strip's end under a small load there, relative to a beam's F L^3 / (3 B w)."""
    model = Shell(mesh, fabric)
    matrix = jacobian_zz(model, mesh)
    x = mesh.positions[:, 0]
    free, tip = x > clamped_to + 1e-9, x > x.max() - 1e-9
    load = np.where(tip, 1.0 / tip.sum(), 0.0)
    sink = np.zeros(len(x))
    sink[free] = spsolve(matrix[free][:, free].tocsc(), load[free])
    return sink[tip].mean() * 3.0 * rigidity * width / length**3


def jacobian_zz(model, mesh):
    from scipy.sparse import coo_array

    blocks = all_blocks(model, mesh.positions, np.zeros_like(mesh.positions))
    i, j, k = model.pairs[:, 0], model.pairs[:, 1], blocks[0][:, 2, 2]
    rows, columns = np.concatenate([i, j, i, j]), np.concatenate([j, i, i, j])
    return coo_array((np.concatenate([k, k, -k, -k]), (rows, columns)), shape=(mesh.n_vertices,) * 2).tocsr()


@pytest.mark.parametrize("degrees", [0.0, 90.0, 45.0])
@pytest.mark.parametrize("kind", ["grid", "unstructured", "other"])
def test_a_loaded_strip_sinks_like_a_beam_on_any_mesh(kind, degrees):
    """Clamped by two rows of vertices, the beam starts half way between them. Equal rigidities: on the bias of
    unequal ones a strip would also twist."""
    length, width, h = 0.4, 0.1, 0.01
    if kind == "grid":
        mesh = build_grid((length, width), (41, 11))
    else:
        mesh = build_unstructured((length, width), h, seed=3 if kind == "other" else 1)
    even = COTTON.model_copy(update={"bending_weft": COTTON.bending_warp}) if degrees == 45.0 else COTTON
    rigidity = even.bending_weft if degrees == 0.0 else even.bending_warp
    sunk = tip_over_beam(turned_material(mesh, degrees), even, length - 0.5 * h, width, -0.5 * length + h, rigidity)
    assert sunk == pytest.approx(1.0, abs=0.03)


def test_bending_derivative_is_exact_at_rest():
    mesh = MESHES["unstructured"]
    model = Shell(mesh, LOOSE)
    x = mesh.positions
    stiffness, _ = jacobians(model, x, np.zeros_like(x))
    direction = np.random.default_rng(4).normal(size=x.shape)
    h = 1e-6
    numeric = -(forces(model, x + h * direction) - forces(model, x - h * direction)).ravel() / (2 * h)
    np.testing.assert_allclose(stiffness @ direction.ravel(), numeric, atol=1e-6 * np.abs(numeric).max())


def rolled(mesh, radius=0.08):
    x = mesh.positions.copy()
    x[:, 0], x[:, 2] = radius * np.sin(x[:, 0] / radius), radius * (1 - np.cos(x[:, 0] / radius))
    return x


def test_rest_angles_are_the_meshs_or_zero():
    flat = MESHES["grid"]
    garment = Mesh(rolled(flat), flat.triangles, flat.material)
    assert Shell(garment, COTTON).energy(garment.positions) == pytest.approx(0.0, abs=1e-20)
    bent = Shell(garment, LOOSE, ShellParameters(rest="flat")).energy(garment.positions)
    assert bent == pytest.approx(Shell(flat, LOOSE).energy(garment.positions), rel=0.05)
    assert bent > 1e-6


@pytest.mark.parametrize("degrees", [20.0, -20.0, 90.0, 150.0])
def test_a_crease_resists_folding_by_the_difference_to_its_angle_at_rest(degrees):
    """Two triangles folded about x: an energy of (2 sin(t / 2) - 2 sin(t0 / 2))^2, however they turn as a whole."""

    def fold(angle):
        far = [0.05, -0.1 * np.cos(angle), -0.1 * np.sin(angle)]
        return np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.05, 0.1, 0.0], far])

    triangles = np.array([[0, 1, 2], [1, 0, 3]], np.int32)
    at_rest = np.deg2rad(degrees)
    model, flat = Shell(Mesh(fold(at_rest), triangles), LOOSE), Shell(Mesh(fold(0.0), triangles), LOOSE)
    weight = flat.energy(fold(1.0)) / np.sin(0.5) ** 2
    turn = Rotation.from_euler("xyz", [0.3, 1.0, -2.0]).as_matrix()
    for angle in (0.0, at_rest, 1.0, -1.0, 2.5):
        expected = weight * (np.sin(0.5 * angle) - np.sin(0.5 * at_rest)) ** 2
        assert model.energy(fold(angle) @ turn.T) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("squeeze", [1.0, 0.02])
def test_forces_of_creases_are_the_energys_slope(squeeze, rng):
    """Of a mesh wound both ways; squeezed to where normals fade."""
    flat = MESHES["unstructured"]
    mixed = flat.triangles.copy()
    mixed[::3] = mixed[::3, ::-1]
    model = Shell(Mesh(rolled(flat), mixed, flat.material), LOOSE)
    x = (rolled(flat) + rng.normal(scale=1e-3, size=flat.positions.shape)) * [squeeze, 1.0, 1.0]
    direction, h = rng.normal(size=x.shape), 1e-8
    slope = (model.energy(x + h * direction) - model.energy(x - h * direction)) / (2 * h)
    assert -(forces(model, x) * direction).sum() == pytest.approx(slope, rel=1e-5)


def test_newton_finds_the_angles_at_rest():
    """The matrix leaves out that normals turn; steps with it still end where the forces vanish."""
    flat = MESHES["grid"]
    garment = Mesh(rolled(flat), flat.triangles, flat.material)
    model = Shell(garment, COTTON, ShellParameters(buckling=1e6))
    x = garment.positions + np.random.default_rng(5).normal(scale=2e-4, size=flat.positions.shape)
    before = model.energy(x)
    for _ in range(40):
        stiffness, _ = jacobians(model, x, 0 * x)
        inertia = 1e-2 * np.eye(len(stiffness))  # [N/m] six motions cost nothing else
        x = x + np.linalg.solve(stiffness + inertia, forces(model, x).ravel()).reshape(x.shape)
    assert model.energy(x) < 1e-6 * before


def test_a_flat_mesh_from_a_file_counts_as_flat(rng):
    """Six digits of a coordinate bend a sheet by some 1e-4 rad. Measured by angles, it would store 1 % more here."""
    mesh = MESHES["grid"]
    rough = Mesh(mesh.positions + rng.uniform(-5e-7, 5e-7, mesh.positions.shape), mesh.triangles, mesh.material)
    assert Shell(rough, LOOSE).energy(rolled(mesh)) == pytest.approx(Shell(mesh, LOOSE).energy(rolled(mesh)), rel=1e-3)


def test_winding_does_not_matter(rng):
    mesh = MESHES["unstructured"]
    mixed = mesh.triangles.copy()
    mixed[::3] = mixed[::3, ::-1]
    x = rolled(mesh) + rng.normal(scale=1e-3, size=mesh.positions.shape)
    other = Shell(Mesh(mesh.positions, mixed, mesh.material), COTTON)
    model = Shell(mesh, COTTON)
    assert other.energy(x) == pytest.approx(model.energy(x), rel=1e-12)
    np.testing.assert_allclose(forces(other, x), forces(model, x), atol=1e-10)
    for a, b in zip(jacobians(other, x, 0 * x), jacobians(model, x, 0 * x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(jacobians(model, x, 0 * x)[0]).max())


def test_warp_follows_the_material_and_stands_upright_without_it():
    grid = build_grid((0.2, 0.2), (5, 5))
    upright = grid.positions @ Rotation.from_euler("x", 90, degrees=True).as_matrix().T
    stiff_warp = LIMP.model_copy(update={"stretch_warp": 9000.0, "stretch_weft": 100.0, "poisson": 0.0})
    pulled = upright * np.array([1.0, 1.0, 1.01])
    for mesh in (Mesh(upright, grid.triangles), Mesh(upright, grid.triangles, grid.material)):
        e = 0.5 * (1.01**2 - 1)
        assert Shell(mesh, stiff_warp).energy(pulled) == pytest.approx(0.5 * 9000.0 * e**2 * 0.04, rel=1e-9)
    swapped = Mesh(upright, grid.triangles, np.ascontiguousarray(grid.material[:, ::-1]))
    assert Shell(swapped, stiff_warp).energy(pulled) == pytest.approx(0.5 * 100.0 * e**2 * 0.04, rel=1e-9)


@pytest.mark.parametrize(
    "triangles",
    [[[0, 1, 2]], [[0, 1, 3], [1, 2, 3], [2, 0, 3]], [[0, 1, 3], [1, 2, 3], [2, 0, 3], [0, 2, 1]]],
    ids=["one triangle", "valence three", "closed"],
)
def test_small_meshes(triangles, rng):
    """Vertices that are beyond two hinges of a triangle at once, and meshes without any hinge."""
    x = np.array([[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0.03, 0.03, 0.02]])[: 1 + np.max(triangles)]
    mesh = Mesh(x, np.array(triangles, np.int32))
    check_mesh(mesh)
    model = Shell(mesh, LOOSE)
    y = x + rng.normal(scale=5e-3, size=x.shape)
    h = 1e-7
    numeric = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = h
        numeric[i] = -(model.energy(y + step) - model.energy(y - step)) / (2 * h)
    np.testing.assert_allclose(forces(model, y), numeric, atol=1e-4 * np.abs(numeric).max() + 1e-12)


def test_collapsed_triangles_stay_finite():
    mesh = MESHES["grid"]
    model = Shell(mesh, COTTON)
    x = mesh.positions * np.array([1.0, 0.0, 0.0])
    assert np.isfinite(forces(model, x)).all()
    assert np.isfinite(model.energy(np.zeros_like(x)))
    assert all(np.isfinite(part).all() for part in jacobians(model, x, x))


def test_same_bits_for_any_number_of_threads(rng):
    mesh = MESHES["fine"]
    x = mesh.positions + rng.normal(scale=2e-3, size=mesh.positions.shape)
    results = []
    try:
        for n in (1, 2):
            set_threads(n)
            model = Shell(mesh, load_fabric("cotton"))
            results.append((forces(model, x, x), all_blocks(model, x, x)))
    finally:
        set_threads(None)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def least_over_folds(fabric, e_u, e_v, load_u, load_v):
    """Energy per area [J/m2] of a triangle strained by e_u and e_v: the least over the strains that go into folds."""
    scale = 1.0 / (1.0 - fabric.poisson**2)
    c_u, c_v = scale * fabric.stretch_weft, scale * fabric.stretch_warp
    c_uv = fabric.poisson * np.sqrt(c_u * c_v)

    def energy(w):
        u, v = e_u + w[0], e_v + w[1]
        elastic = 0.5 * (c_u * u**2 + c_v * v**2) + c_uv * u * v
        return elastic + 0.01 * (c_u * w[0] ** 2 + c_v * w[1] ** 2) + load_u * w[0] + load_v * w[1]

    steps = np.linspace(0.0, 0.2, 2001)
    grid = energy(np.stack(np.meshgrid(steps, steps, indexing="ij")))
    i, j = np.unravel_index(np.argmin(grid), grid.shape)
    near = [np.linspace(max(s[k] - 1e-4, 0.0), s[k] + 1e-4, 401) for s, k in ((steps, i), (steps, j))]
    return energy(np.stack(np.meshgrid(*near, indexing="ij"))).min()


@pytest.mark.parametrize(
    ("e_u", "e_v"),
    [(-0.05, 0.02), (0.02, -0.05), (-0.05, -0.03), (-0.05, 0.0), (0.01, -0.002), (-2e-4, -3e-4), (0.03, 0.01)],
)
def test_pushed_cloth_buckles_within_triangles(e_u, e_v):
    """Against a search over all strains that might go into folds."""
    mesh = build_grid((0.2, 0.2), (5, 5))
    model = Shell(mesh, COTTON)
    area = 0.5 * 0.05**2
    load_u, load_v = (0.25 * np.pi**2 * b / (2.0 * area) for b in (COTTON.bending_weft, COTTON.bending_warp))
    wanted = 0.04 * least_over_folds(COTTON, e_u, e_v, load_u, load_v)
    assert model.energy(strained(mesh, e_u, 0, e_v)) == pytest.approx(wanted, rel=1e-4, abs=1e-12)


def test_cloth_that_never_buckles_is_as_stiff_pushed_as_pulled():
    mesh = MESHES["grid"]
    stiff, soft = Shell(mesh, COTTON, ShellParameters(buckling=1e6)), Shell(mesh, COTTON)
    e = 0.01
    pulled, pushed = strained(mesh, e, 0, 0), strained(mesh, -e, 0, 0)
    assert stiff.energy(pushed) == pytest.approx(stiff.energy(pulled), rel=1e-9)
    assert soft.energy(pulled) == pytest.approx(stiff.energy(pulled), rel=1e-12)
    assert soft.energy(pushed) < 0.05 * stiff.energy(pushed)
