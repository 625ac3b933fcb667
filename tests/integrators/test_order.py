"""The order at which each integrator converges, against SciPy's own solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from weft.integrators import INTEGRATORS

from .conftest import run

EXACT = {"tolerance": 1e-12, "max_iterations": 1000}
CASES = {
    "implicit_euler": (1, EXACT),
    "implicit_euler-newton": (1, {**EXACT, "solver": "newton", "newton_tolerance": 1e-12}),
    "symplectic_euler": (1, {}),
    "bdf2": (2, EXACT),
    "bdf2-newton": (2, {**EXACT, "solver": "newton", "newton_tolerance": 1e-12}),
    "gauss_seidel": (1, {"tolerance": 1e-13, "max_sweeps": 5000}),
    "runge_kutta": (4, {}),
    "central": (2, {**EXACT, "error": 1e-12}),
}


def reference(system, x, v, time):
    n = x.size

    def rate(t, y):
        system.time = t
        return np.concatenate(
            [y[n:], (system.forces(y[:n].reshape(-1, 3), y[n:].reshape(-1, 3), 0.0) / system.masses[:, None]).ravel()]
        )

    end = solve_ivp(rate, (0.0, time), np.concatenate([x.ravel(), v.ravel()]), method="DOP853", rtol=1e-12, atol=1e-13)
    return end.y[:n, -1].reshape(-1, 3), end.y[n:, -1].reshape(-1, 3)


def test_every_integrator_has_a_case():
    assert {name.split("-")[0] for name in CASES} == set(INTEGRATORS)


@pytest.mark.parametrize(
    ("case", "damping"), [*((case, 0.0) for case in CASES), ("bdf2-newton", 0.3), ("runge_kutta", 0.3)]
)
def test_observed_order(case, damping, triangle):
    """Dampers turn with the cloth, which no derivative tells: linearised, BDF2 is of first order in them."""
    order, parameters = CASES[case]
    system, x, v = triangle
    system.damping = damping
    system.force = lambda t: np.array([np.sin(2.0 * t), 0.0, np.cos(3.0 * t)])
    time = 1.0
    x_exact, v_exact = reference(system, x, v, time)
    errors = []
    for steps in (40, 80):
        x_end, v_end, _ = run(case.split("-")[0], parameters, system, x, v, time / steps, steps)
        errors.append((np.abs(x_end - x_exact).max(), np.abs(v_end - v_exact).max()))
    observed = np.log2(np.array(errors[0]) / errors[1])
    np.testing.assert_allclose(observed, order, atol=0.25)


def test_bdf2_damps_less_than_implicit_euler(triangle):
    system, x, v = triangle
    start = system.energy(x, v)
    lost = {}
    for name in ("implicit_euler", "bdf2"):
        x_end, v_end, _ = run(name, EXACT, system, x, v, 0.02, 50)
        lost[name] = start - system.energy(x_end, v_end)
    assert 0.0 < lost["bdf2"] < 0.1 * lost["implicit_euler"]


def test_the_embedded_pair_keeps_its_tolerance_and_adapts(triangle):
    system, x, v = triangle
    x_exact, _ = reference(system, x, v, 1.0)
    errors, substeps = [], []
    for tolerance in (1e-5, 1e-8, 1e-11):
        x_end, _, integrator = run(
            "runge_kutta", {"scheme": "dormand_prince", "tolerance": tolerance}, system, x, v, 1.0, 1
        )
        errors.append(np.abs(x_end - x_exact).max())
        substeps.append(integrator.substeps)
        assert errors[-1] < 30.0 * tolerance
    assert substeps[0] < substeps[1] < substeps[2]
    # order 5: a thousandth of the error costs 1000^(1/5) = 4 times the steps
    assert substeps[2] / substeps[1] == pytest.approx(4.0, rel=0.25)
