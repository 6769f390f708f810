"""L1-Exact: penalty on the distance to a budget. Aggarwal and Welleck, 2025, arXiv:2503.04697."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def l1_exact(group_size: PositiveInt = 16, length_coef: NonNegative = 0.0003) -> Method:
    """LCPO-Exact: r = [correct] - length_coef |n - L|, A = (r - mean(r)) / std(r).

    Reward terms: "budget", the n tokens that the prompt asks for.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 16).
        length_coef: penalty per token (authors' script: 0.0003).
    """
    advantage = chain(BudgetDistancePenalty(length_coef), Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size), advantage=advantage, updates=Updates(minibatches=2)
    )


@component
class BudgetDistancePenalty:
    """x - length_coef |budget - L|.

    Args:
        length_coef: penalty per token.
        budget_term: reward term that holds the budget, in tokens.
    """

    length_coef: NumberOrSchedule
    budget_term: str = "budget"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.budget_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - self.length_coef * (batch.reward_terms[self.budget_term] - batch.lengths).abs()


PAPER = Paper(
    title="L1: Controlling How Long A Reasoning Model Thinks With Reinforcement Learning",
    use="The prompt states how many tokens to think, and the length should match.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "cmu-l3/l1: math_reward.py (get_delta_score_linear) and scripts/train/run_l1_exact.sh",
    ),
    plan="run_l1_exact.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "The script's KL of 0.001 to the reference and its framework's entropy bonus of 0.001.",
        "The framework's dual clip of 3 (clip_ratio_c of config/ppo_trainer.yaml).",
        "The prompt that states the number of tokens is left to the tasks.",
        "The temperature of 0.6 at which the script samples.",
        "An answer without </think> counts as wrong in the release.",
    ),
    deviations=(
        "The mean is over answers, as GRPO's: the script's is over tokens, verl's default.",
    ),
    audit=(
        "reward, coefficient, group size and plan compared with math_reward.py and the run script"
    ),
)
