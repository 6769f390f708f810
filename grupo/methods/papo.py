"""PAPO: an answer should depend on the image. Wang et al., 2025, arXiv:2507.06448."""

from collections.abc import Mapping

from torch import Tensor

from grupo.algo.divergences import k3_clamped
from grupo.algo.losses import KL, Clip, Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Number, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Perception-Aware Policy Optimization for Multimodal Reasoning",
    use="A model that reasons about images answers without using them.",
    tags=("multimodal", "kl"),
    trl="PAPOTrainer, experimental, gone by 1.10; it masked the images itself",
    checked=("golden", "properties", "reference", "run"),
    catalogue=("papo",),
)


@component
class PerceptionLoss(Loss):
    """-perception_coef k + entropy_coef (-l - m), k = e^(m - l) - (m - l) - 1.

    l = log pi, m the same with the image masked, a constant measured before the update; m - l is
    clamped to +-20, k to +-10.

    Args:
        perception_coef: weight of the divergence from the masked view.
        entropy_coef: weight of the entropy of both views.
        view: name of the masked view among the auxiliary models.
    """

    perception_coef: Number
    entropy_coef: Number
    view: str = "masked"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.view}",))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        m = batch.signals[f"logp@{self.view}"]
        return -self.perception_coef * k3_clamped(pi.logp, m) - self.entropy_coef * (pi.logp + m)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/kl_{self.view}": k3_clamped(pi.logp, batch.signals[f"logp@{self.view}"])}


def papo(
    group_size: PositiveInt = 5,
    perception_coef: NonNegative = 0.02,
    entropy_coef: NonNegative = 0.03,
    kl_coef: NonNegative = 0.01,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO with a reward for tokens that depend on the image.

    loss = -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3
      - perception_coef k + entropy_coef (H(l) + H(m)),  H(x) = -x at the sampled tokens.
    The recipe defines "masked", a view of the task whose image has lost 0.6 of its patches (14 x
    14).

    Args:
        group_size: rollouts per task.
        perception_coef: weight of the divergence from the masked view (authors' code: 0.02, or 0.01
            without a KL).
        entropy_coef: weight of the entropies (authors' code: 0.03, or 0.05 for the largest model).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.01).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # The released scripts hold m constant by default, so H(m) has a value and no gradient. Their
    # mean is over tokens by default; here over answers, as GRPO's.
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL() + PerceptionLoss(perception_coef, entropy_coef)
    return Method(sampler=GroupSampler(group_size), loss=loss)
