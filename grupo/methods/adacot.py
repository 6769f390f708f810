"""AdaCoT: thinking too little and too much both cost. Lou et al., 2025, arXiv:2505.11896."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="AdaCoT: Pareto-Optimal Adaptive Chain-of-Thought Triggering via Reinforcement Learning",
    use="It is known which tasks deserve thinking, and the model is to think for those alone.",
    checked=("golden", "laws", "run"),
    catalogue=("adacot",),
)


@component
class ThinkingTriggerPenalty:
    """x - miss [needed, not thought] - over [thought, not needed] - malformed [bad format]."""

    missed_penalty: float
    overuse_penalty: float
    format_penalty: float
    required_reward_terms = (
        "think",
        "needed",
        "format",
    )  # who thinks, who needs to, good form: above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        think, needed, good = (
            batch.reward_terms[name] > 0.5 for name in self.required_reward_terms
        )
        missed, vain = (needed & ~think).to(x), (think & ~needed).to(x)
        return (
            x
            - self.missed_penalty * missed
            - self.overuse_penalty * vain
            - self.format_penalty * (~good).to(x)
        )


@component
class MaskDecisionTokens:
    """`aggregation`, but 0 for actions that are marked as the decision whether to think."""

    aggregation: Aggregation = sequence_mean
    required_signals = frozenset(
        {"step/decision"}
    )  # 1 at its token, where it is not to be learned from

    def __call__(self, batch: Batch) -> PerAction:
        return self.aggregation(batch).masked_fill(batch.signals["step/decision"] > 0, 0.0)


def adacot(
    group_size: int = 8,
    missed_penalty: float = 0.2,
    overuse_penalty: float = 0.3,
    format_penalty: float = 1.0,
) -> Method:
    """r = base - `missed_penalty` P_miss - `overuse_penalty` P_over - `format_penalty` P_fmt; decisions may be left out.

    Reward terms: "think", "needed" (a label of the task) and "format". "step/decision" is 1 at the first
    token after the thinking opens where all tasks want thinking (selective loss masking), else 0.
    """
    # The paper trains by PPO with a critic; the reward is as good for a group. Its weights were not
    # seen: these are our choice, `missed_penalty` and `overuse_penalty` move along its front of accuracy and cost.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            ThinkingTriggerPenalty(missed_penalty, overuse_penalty, format_penalty),
            Center(),
            ScaleByStd(),
        ),
        aggregation=MaskDecisionTokens(),
    )
