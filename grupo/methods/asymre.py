"""AsymRE: off policy, a baseline below the mean. Arnal et al., 2025, arXiv:2506.20520."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def asymre(group_size: PositiveInt = 8, baseline_margin: NonNegative = 0.1) -> Method:
    """-(r - V) log pi of whole answers, V = mean(r) - baseline_margin, without ratio or clip.

    With V below the expected reward off-policy REINFORCE improves the policy; at or above it, it
    may collapse.

    Args:
        group_size: rollouts per task (paper, by public notes: 8).
        baseline_margin: minus the paper's delta V (by public notes 0.1: all runs at delta V = 0
            collapse).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), AddConstant(baseline_margin)),
        loss=Reinforce(),
        aggregation=token_sum,
    )


@component
class AddConstant:
    """x + constant.

    Args:
        constant: added to every advantage.
    """

    constant: NumberOrSchedule

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x + self.constant


PAPER = Paper(
    title="Asymmetric REINFORCE for off-Policy Reinforcement Learning: Balancing positive and "
    "negative rewards",
    use="Rollouts are stale or from another policy, and importance ratios are not available.",
    tags=("off-policy", "advantage"),
    checked=("golden", "properties", "run"),
    source=Source("third_party", "public notes on sections 5.2 and 5.3; the abstract"),
    plan=(
        "one update per step; the paper's behaviour policy is older: by the notes it is refreshed "
        "every 250 gradient steps"
    ),
    missing=(
        (
            "A behaviour policy that lags by up to 250 updates: without stale rollouts the method "
            "is REINFORCE with a shifted baseline."
        ),
    ),
    deviations=(
        (
            "The mean is over answers of sums over tokens: no note that was opened states whether "
            "the paper divides by the length."
        ),
    ),
    audit=(
        "objective compared with the abstract and a review (themoonlight.io), the margin of 0.1 "
        "and the group of 8 with two public notes on sections 5.2 and 5.3"
    ),
)
