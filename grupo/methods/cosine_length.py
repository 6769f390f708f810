"""Cosine reward: short if correct, long if incorrect. Yeo et al., 2025, arXiv:2502.03373."""

from math import pi

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import RepetitionPenalty
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cosine_length(
    max_length: PositiveInt,
    group_size: PositiveInt = 16,
    repetition_coef: NumberOrSchedule = -0.05,
    gamma: Fraction = 0.99,
) -> Method:
    """r = r_L + (r_0 - r_L) (1 + cos(pi L / max_length)) / 2: correct 2 to 1, incorrect -10 to 0.

    A = (r - mean(r)) / std(r) + the discounted return of repetition_coef at repeated tokens. Reward
    term: "correct". Signal "step/repeated": `grupo.algo.advantages.reward_shaping.repeated_ngrams`
    with n = 40.

    A step makes 32 updates: 2 passes over 16 minibatches.

    Args:
        max_length: length at which an answer has the lowest reward, in tokens.
        group_size: rollouts per task (authors' script: 16).
        repetition_coef: reward of a repeated token; negative.
        gamma: discount per token of the repetition reward.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            CosineLengthReward(max_length),
            Center(),
            ScaleByStd(),
            RepetitionPenalty(repetition_coef, gamma),
        ),
        updates=Updates(epochs=2, minibatches=16),
    )


@component
class CosineLengthReward:
    """r from r_0 at length 0 to r_L at max_length along half a cosine; overlong_reward beyond.

    The incoming reward is ignored; the reward term "correct" is true above 1/2.

    Args:
        max_length: L, in tokens.
        correct_rewards: r_0 and r_L of correct answers.
        incorrect_rewards: r_0 and r_L of incorrect answers.
        overlong_reward: reward of an answer of max_length - margin tokens or more.
        margin: in tokens.
    """

    max_length: PositiveInt
    correct_rewards: tuple[NumberOrSchedule, NumberOrSchedule] = (2.0, 1.0)
    incorrect_rewards: tuple[NumberOrSchedule, NumberOrSchedule] = (-10.0, 0.0)
    overlong_reward: NumberOrSchedule = -10.0
    margin: PositiveInt = 16

    requires = Requires(reward_terms=("correct",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct = batch.reward_terms["correct"] > 0.5
        L = batch.lengths
        start = torch.where(correct, self.correct_rewards[0], self.incorrect_rewards[0])
        end = torch.where(correct, self.correct_rewards[1], self.incorrect_rewards[1])
        r = end + (start - end) * (1 + torch.cos(pi * L / self.max_length)) / 2
        return torch.where(self.margin + L >= self.max_length, self.overlong_reward, r)


PAPER = Paper(
    title="Demystifying Long Chain-of-Thought Reasoning in LLMs",
    use="Chains of thought exceed the context, and should be long for hard tasks only.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
    example="cosine_length(max_length=64)",
    catalogue=("cosine-length-reward",),
    source=Source(
        "code",
        "eddycmu/demystify-long-cot, openrlhf/scripts, "
        "section_4.5__length_reward_hacking__cosine_repetition_penalty.sh",
    ),
    plan=(
        "section 4.5 script: 512 prompts of 16 answers, train batch 512 answers, 2 epochs: 32 "
        "updates per step"
    ),
    missing=(
        "The critic: the paper trains by PPO.",
        "A KL penalty of 0.01 in the reward, one half of it discounted as the repetition reward.",
    ),
    deviations=(
        "Without a critic the repetition reward has no baseline: no repetition, no penalty.",
        (
            "The reward of length is standardised within its group, and A is not whitened; the "
            "release has the advantages of its critic, whitened over all tokens of a batch."
        ),
        "A minibatch holds whole groups; the release shuffles answers into them.",
    ),
    audit=(
        "rewards, penalty, n-gram size, discounts and batch sizes compared with the script of "
        "section 4.5"
    ),
    shown=("docs/claims.md#padded",),
)
