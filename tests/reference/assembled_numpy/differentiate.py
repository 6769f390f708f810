"""Derivatives by a complex step: f'(x) = Im f(x + ih) / h, exact to the last digits."""

from collections.abc import Callable, Mapping

import numpy as np

STEP = 1e-40


def gradient(
    loss: Callable[[Mapping[str, np.ndarray]], complex], at: Mapping[str, np.ndarray]
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss, and its derivative with respect to every number of `at`.

    Comparisons, `np.minimum`, `np.maximum`, `np.clip`, `np.sort` and `np.where` follow the real
    part. For absolute values and constants see `magnitude` and `stop_gradient` of `formulas.py`.
    """
    values = {name: np.array(x, dtype=complex) for name, x in at.items()}
    value = float(np.real(loss(values)))
    derivatives = {}
    for name, x in values.items():
        derivative = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            x[index] += 1j * STEP
            derivative[index] = np.imag(loss(values)) / STEP
            x[index] -= 1j * STEP
        derivatives[name] = derivative
    return value, derivatives
