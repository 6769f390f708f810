"""PAPO: an answer ought to depend on the image. Wang et al., 2025, arXiv:2507.06448."""

from collections.abc import Mapping

from torch import Tensor

from grupo.algo.divergences import k3_held
from grupo.algo.losses import KL, Clip, Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Perception-Aware Policy Optimization for Multimodal Reasoning",
    use="A model that reasons about images answers without looking at them.",
    trl="PAPOTrainer, experimental, gone by 1.10; it masked the images itself",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("papo",),
)


@piece
class Perception(Loss):
    """-`gain` k + `sharp` (-l - m): k = e^(m - l) - (m - l) - 1, l = log pi, m the same unseeing.

    m is a constant, measured before the update; m - l is held within 20, k within 10.
    """

    gain: float
    sharp: float
    view: str = "masked"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"logp@{self.view}"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        m = batch.seen[f"logp@{self.view}"]
        return -self.gain * k3_held(pi.logp, m) - self.sharp * (pi.logp + m)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"kl/{self.view}": k3_held(pi.logp, batch.seen[f"logp@{self.view}"])}


def papo(
    group: int = 5, gain: float = 0.02, sharp: float = 0.03, kl: float = 0.01, clip: float = 0.2
) -> Method:
    """GRPO that is rewarded for saying what it would not say without the image.

    loss = -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A) + `kl` k3
           - `gain` k + `sharp` (H(l) + H(m)),  H(x) = -x at the tokens that were said.
    The recipe names "masked", a view of the task whose image has lost 0.6 of its patches (14 x 14).
    """
    # `gain` 0.02 with this KL, 0.01 without; `sharp` 0.05 for the largest model, 0.03 elsewhere: so
    # the released scripts, which hold m constant unless told otherwise, and then H(m) has a value
    # and no gradient. Their code's mean is over tokens by default; ours over answers, as GRPO's.
    loss = Clip(clip, clip) + kl * KL() + Perception(gain, sharp)
    return Method(sample=Independent(group), loss=loss)
