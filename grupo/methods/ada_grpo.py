"""Ada-GRPO: rare formats earn more, until they need not. Wu et al., 2025, arXiv:2505.20258."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.schedules import Cosine, as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="ARM: Adaptive Reasoning Model",
    use="A model knows several formats of reasoning, and GRPO leaves it only the longest.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("arm-ada-grpo",),
)


@component
class RarityScale:
    """x (1 + strength (G / F - 1)), F of the group's G in the same `mode`; 0 for mode < 0."""

    rarity_coef: float
    reward_term: str = "mode"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Labels of the formats; below 0: none that is known."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mode = batch.reward_terms[self.reward_term]
        G, F = group_ops.count(x, batch.group), group_ops.count_equal(mode, batch.group)
        return x * (1 + self.rarity_coef * (G / F - 1)) * (mode >= 0)


def ada_grpo(group_size: int = 8, clip_eps: float = 0.2, kl_coef: float = 0.001) -> Method:
    """r' = a r with a = 1 + (G / F - 1) (1 + cos(pi t / T)) / 2: from G / F down to 1.

    reward_terms["mode"] labels the format of each rollout, r is the reward; A = (r' - mean) / std.
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    rarity = RarityScale(as_float(Cosine(1.0, 0.0)))
    return Method(
        sampler=GroupSampler(group_size), advantage=chain(rarity, Center(), ScaleByStd()), loss=loss
    )
