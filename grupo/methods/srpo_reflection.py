"""SRPO-Reflection: reflecting pays if answers gain by it. Wan et al., 2025, arXiv:2506.01713."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="SRPO: Enhancing Multimodal LLM Reasoning via Reflection-Aware Reinforcement Learning",
    use="A model has learned to answer, reflect and answer again, and its reflections are empty.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("srpo-reflection",),
)


@component
class ReflectionReward:
    """r = (format + first) / 2 + effect + reflected [reflects] + brief e^-u^2 (eq. 4 to 8).

    effect: right again 1/4, mended `corrected_reward`, spoilt -1/4, wrong again 0. u = |L - 2 s| / (s / 2)
    with s the length of the first thinking and answer: longest reward at L = 2 s.
    """

    corrected_reward: float
    reflection_reward: float
    brevity_coef: float
    required_reward_terms = ("first", "correct", "format", "reflection", "first_length")

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        first, last, form, reflects, s = (
            batch.reward_terms[name] for name in self.required_reward_terms
        )
        before, after = first > 0.5, last > 0.5
        right = after.to(first)
        effect = torch.where(before, right / 2 - 0.25, self.corrected_reward * right)
        u = (batch.lengths - 2 * s) / (s / 2).clamp(min=1e-9)
        short = torch.where(s > 0, torch.exp(-(u**2)), 0.0)
        gained = (effect + self.reflection_reward) * (reflects > 0.5)
        return (form + first) / 2 + gained + self.brevity_coef * short


def srpo_reflection(
    group_size: int = 8,
    corrected_reward: float = 0.5,
    reflection_reward: float = 0.25,
    brevity_coef: float = 0.1,
) -> Method:
    """r rewards the first answer, its form, what the reflection did to it, and twice its length.

    Reward terms: "first" and "correct" (is the first, the last answer right), "format", "reflection"
    (is there one, and a second answer), "first_length" in tokens, 0 where there is no second.
    """
    # The released reward pays 1 for a mended answer, more than for one right twice, and nothing
    # for the form of the reflection: mended=1, reflected=0. A single answer fails there, for 0.
    # `brevity_coef` is alpha there; group ours.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            ReflectionReward(corrected_reward, reflection_reward, brevity_coef),
            Center(),
            ScaleByStd(),
        ),
    )
