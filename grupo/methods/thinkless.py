"""DeGRPO: whether to think has a loss of its own. Fang et al., 2025, arXiv:2505.13379."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Thinkless: LLM Learns When to Think",
    use="The first token says whether to think, and long answers drown what it should learn.",
    checked=("golden", "laws", "reference"),
    catalogue=("thinkless-degrpo",),
)


@component
class ShortThinkingReward:
    """r = 1 for who is right at once, `thinking_reward` for who is right after thinking, else -1."""

    thinking_reward: float
    required_reward_terms = ("correct", "think")  # above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, think = (batch.reward_terms[name] > 0.5 for name in self.required_reward_terms)
        return (1 + (self.thinking_reward - 1) * think.to(x)).where(right, -1.0)


@component
class ControlTokenMean:
    """`control_coef` / N for the first action of each of N rows, 1 / (their number) for all others."""

    control_coef: float

    def __call__(self, batch: Batch) -> PerAction:
        control = batch.mask & (batch.mask.cumsum(1) == 1)
        others = batch.mask & ~control
        first = control.to(batch.old_logp) * self.control_coef / control.sum().clamp(min=1)
        return first + others.to(first) / others.sum().clamp(min=1)


def thinkless(
    group_size: int = 8,
    control_coef: float = 0.001,
    thinking_reward: float = 0.5,
    clip_eps: float = 0.2,
    kl_coef: float = 0.001,
) -> Method:
    """loss = `control_coef` mean of l over first tokens + mean of l over all others; A = r - mean(r).

    l is PPO's clipped loss. Reward terms: "correct", and "think", 1 if the first token says to think.
    r = 1 right at once, `thinking_reward` right after thinking, -1 wrong or malformed.
    """
    # The release gives the KL a mean over all tokens; here it is weighted like the rest. In a run
    # that it resumed `thinking_reward` was 0.8.
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    credit, weigh = (
        chain(ShortThinkingReward(thinking_reward), Center()),
        ControlTokenMean(control_coef),
    )
    return Method(sampler=GroupSampler(group_size), advantage=credit, loss=loss, aggregation=weigh)
