"""VeriFree: raise the reference answer's own probability. Zhou et al., 2025, arXiv:2505.21493."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Reinforcing General Reasoning without Verifiers",
    use="Reference answers are at hand and short, and nothing can verify another wording.",
    checked=("golden", "laws", "run"),
)


@component
class ReasoningThenAnswerAdvantage:
    """R_i - mean of the others on what was sampled, R_i on what was recited: the answer.

    R is `reward_term`, the probability that the policy gives to the reference answer after the reasoning.
    """

    reward_term: str = "answer_probability"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The probability of the reference answer."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = batch.reward_terms[self.reward_term]
        A = R - group_ops.leave_one_out_mean(R, batch.group)
        sampled = batch.signals["sampled"] > 0
        return torch.where(sampled, A[batch.rollout, None], R[batch.rollout, None]) * batch.mask


def verifree(group_size: int = 8) -> Method:
    """Gradient of E[pi(answer | question, reasoning)]: A log pi(reasoning) + R log pi(answer).

    loss = mean over rollouts of -sum_t A_t log pi(a_t), A by `ReasoningThenAnswerAdvantage`. A rollout is
    reasoning that was sampled and the reference answer, recited in place of the policy's own.
    """
    # The paper weighs the answer's term with R; the released code also has A and 1 there, and by
    # default log R as the reward. The group is our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ReasoningThenAnswerAdvantage(),
        loss=Reinforce(),
        aggregation=token_sum,
    )
