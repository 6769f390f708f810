"""The step of a window that moves along tasks sorted by difficulty."""

from collections.abc import Mapping
from math import tanh

from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive
from grupo.core.requires import Requires

SHIFT = "curriculum/shift"  # metric of `WindowShift`


@component
class WindowShift:
    """Return x unchanged, and log how far the window of tasks should move, in tasks.

    shift = n tanh(a (r - b)) + n tanh(a C), clamped to [0, max_shift], with r the mean reward of
    the batch and C the mean `concentration` of its rollouts: the window moves to harder tasks
    faster where accuracy and concentration are high. Source: GAIN-RL (arXiv:2506.02281).

    Args:
        scale: n, in tasks.
        gain: a.
        target: b, the reward at which it has no effect; the release halves rewards of 0 to 2.
        max_shift: largest shift of a step, in tasks.

    >>> from grupo.testing.batches import make_batch
    >>> signals = {"concentration": [[0.3, 0.3]] * 2}
    >>> half = make_batch(group=[0, 0], reward=[1, 0], length=[2, 2], signals=signals)
    >>> round(WindowShift().metrics(half)["curriculum/shift"], 1)
    268.5
    """

    scale: NonNegative = 500.0
    gain: Positive = 2.0
    target: NumberOrSchedule = 0.5
    max_shift: NonNegative = 1000.0

    requires = Requires(signals=("concentration",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """`curriculum/shift`, the shift, and `concentration`, the mean over all actions."""
        weights = batch.mask.double() / batch.mask.sum(1, keepdim=True).clamp(min=1)
        per_row = (batch.signals["concentration"].double() * weights).sum(1)
        is_row = batch.mask.any(1)
        concentration = float(per_row[is_row].mean()) if is_row.any() else 0.0
        reward = float(batch.reward.mean()) if len(batch.reward) else 0.0
        shift = self.scale * tanh(self.gain * (reward - self.target))
        shift += self.scale * tanh(self.gain * concentration)
        return {
            SHIFT: min(max(shift, 0.0), float(self.max_shift)),
            "concentration": concentration,
        }
