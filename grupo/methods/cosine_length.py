"""Cosine reward: right is to be short, wrong to be long. Yeo et al., 2025, arXiv:2502.03373."""

from math import pi

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import RepetitionPenalty
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Demystifying Long Chain-of-Thought Reasoning in LLMs",
    use="Chains of thought grow past the context, and are to grow for hard tasks only.",
    checked=("golden", "laws", "reference", "run"),
    example="cosine_length(max_length=64)",
    catalogue=("cosine-length-reward",),
)


@component
class CosineLengthReward:
    """r from r_0 at length 0 to r_L at `max_length` along half a cosine; -10 for who reaches it."""

    max_length: int
    correct_rewards: tuple[float, float] = (2.0, 1.0)
    incorrect_rewards: tuple[float, float] = (-10.0, 0.0)
    overlong_reward: float = -10.0
    margin: int = 16
    required_reward_terms = ("correct",)  # above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, L = batch.reward_terms["correct"] > 0.5, batch.lengths
        start, end = (
            torch.where(right, *pair)
            for pair in zip(self.correct_rewards, self.incorrect_rewards, strict=True)
        )
        r = end + (start - end) * (1 + torch.cos(pi * L / self.max_length)) / 2
        return torch.where(self.margin + L >= self.max_length, self.overlong_reward, r)


def cosine_length(
    max_length: int, group_size: int = 16, repetition_coef: float = -0.05, gamma: float = 0.99
) -> Method:
    """r = r_L + (r_0 - r_L) (1 + cos(pi L / `max_length`)) / 2: right 2 to 1, wrong -10 to 0.

    A = (r - mean(r)) / std(r) + the discounted return of `repetition_coef` for repeated tokens.
    reward_terms["correct"]; marks of `grupo.algo.advantages.reward_shaping.repeated`, n = 40.
    """
    # The paper trains by PPO and gives each kind of reward a discount of its own; without a critic
    # the price of repetition is compared with nothing: no repetition is no price.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            CosineLengthReward(max_length),
            Center(),
            ScaleByStd(),
            RepetitionPenalty(repetition_coef, gamma),
        ),
    )
