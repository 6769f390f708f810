"""L1-Max: the token budget is a soft limit. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def l1_max(
    group_size: PositiveInt = 16,
    length_coef: NonNegative = 0.0003,
    reward_at_budget: Fraction = 0.5,
) -> Method:
    """LCPO-Max: r = [correct] clip(length_coef (n - L) + reward_at_budget, 0, 1).

    A = (r - mean(r)) / std(r). Reward terms: "budget", the n tokens that the prompt allows.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 16).
        length_coef: loss of reward per token (paper: 0.0003).
        reward_at_budget: fraction of the reward at exactly n tokens (paper: 0.5).
    """
    advantage = chain(SoftBudgetLimit(length_coef, reward_at_budget), Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size), advantage=advantage, updates=Updates(minibatches=2)
    )


@component
class SoftBudgetLimit:
    """x clip(length_coef (budget - L) + reward_at_budget, 0, 1).

    Args:
        length_coef: loss of reward per token.
        reward_at_budget: fraction of the reward at exactly the budget.
        budget_term: reward term that holds the budget, in tokens.
    """

    length_coef: NumberOrSchedule
    reward_at_budget: Fraction
    budget_term: str = "budget"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.budget_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        remaining = batch.reward_terms[self.budget_term] - batch.lengths
        return x * (self.length_coef * remaining + self.reward_at_budget).clamp(0, 1)


PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt states how many tokens to think at most.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "cmu-l3/l1: math_reward.py (get_delta_score_linear_both) and "
        "scripts/train/run_l1_max.sh; the paper for both constants",
    ),
    plan="run_l1_max.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "The script's KL of 0.001 to the reference and its framework's entropy bonus of 0.001.",
        "The framework's dual clip of 3 (clip_ratio_c of config/ppo_trainer.yaml).",
        "The start from a policy trained with L1-Exact.",
        "Sampling at a temperature of 0.6.",
    ),
    deviations=(
        (
            "The formula is the paper's: the code has (clip(alpha (n - L), -1, 1) + 1) / 2, so "
            "its alpha is twice length_coef, and the script sets no alpha."
        ),
        "run_l1_max.sh sets none of the switches of the length reward, which are off in "
        "config/ppo_trainer.yaml: as written, its reward is the correctness. The product of both "
        "is multiplier_reward of math_reward.py; with linear_reward alone they are added.",
        "The mean is over answers, as GRPO's: the script's is over tokens, verl's default.",
    ),
    audit=(
        "reward compared with math_reward.py, group size and plan with the run script; "
        "length_coef and reward_at_budget with public notes that quote eq. 2 of the paper"
    ),
)
