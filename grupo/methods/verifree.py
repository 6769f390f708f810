"""VeriFree: maximises the reference answer's probability. Zhou et al., 2025, arXiv:2505.21493."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.data_source import REQUIRES_SAMPLED, sampled_mask
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def verifree(group_size: PositiveInt = 8) -> Method:
    """Gradient of E[pi(answer | question, reasoning)]: A log pi(reasoning) + R log pi(answer).

    loss = mean over rollouts of -sum_t A_t log pi(a_t), A by `ReasoningThenAnswerAdvantage`. A
    rollout is sampled reasoning and the recited reference answer in place of the policy's own.

    Args:
        group_size: rollouts per task (authors' script: 8).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ReasoningThenAnswerAdvantage(),
        loss=Reinforce(),
        aggregation=token_sum,
    )


@component
class ReasoningThenAnswerAdvantage:
    """R_i - mean of the others on sampled tokens, R_i on the recited reference answer.

    R is the policy's probability of the reference answer after the reasoning.

    Args:
        reward_term: reward term that holds R.
    """

    reward_term: str = "answer_probability"

    @property
    def requires(self) -> Requires:
        # the probability of the reference answer
        return REQUIRES_SAMPLED | Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = batch.reward_terms[self.reward_term]
        A = R - group_ops.leave_one_out_mean(R, batch.group)
        sampled = sampled_mask(batch)
        return torch.where(sampled, A[batch.rollout, None], R[batch.rollout, None]) * batch.mask


PAPER = Paper(
    title="Reinforcing General Reasoning without Verifiers",
    use="Reference answers are short, and other wordings cannot be verified.",
    tags=("reward",),
    checked=("golden", "properties", "run"),
    source=Source("code", "sail-sg/VeriFree, verifree.py and run.sh"),
    plan=(
        "run.sh: 16 prompts of 8 rollouts, train batch 128, num_ppo_epochs 1: one update per step"
    ),
    missing=(
        (
            "R = 0 for a rollout that ends at the token limit or without an answer tag, and R over "
            "the reference in its box and tags: part of the environment's reward term."
        ),
    ),
    deviations=(
        (
            "The answer's term is weighted by R, as in run.sh; the code also has A and 1 there, "
            "and log R as default reward."
        ),
    ),
    audit=(
        "advantage, both terms of the loss and number of updates compared with verifree.py and "
        "run.sh"
    ),
)
