"""VeriFree: raise the reference answer's own probability. Zhou et al., 2025, arXiv:2505.21493."""

import torch
from torch import Tensor

from grupo.algo.aggregation import sequence_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Reinforcing General Reasoning without Verifiers",
    use="Reference answers are at hand and short, and nothing can verify another wording.",
    checked=("golden", "laws", "run"),
)


@piece
class ReasonThenAnswer:
    """R_i - mean of the others on what was sampled, R_i on what was recited: the answer.

    R is `part`, the probability that the policy gives to the reference answer after the reasoning.
    """

    part: str = "answer_probability"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The probability of the reference answer."""
        return (self.part,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = batch.parts[self.part]
        A = R - group_ops.mean_of_others(R, batch.group)
        sampled = batch.seen["sampled"] > 0
        return torch.where(sampled, A[batch.rollout, None], R[batch.rollout, None]) * batch.mask


def verifree(group: int = 8) -> Method:
    """Gradient of E[pi(answer | question, reasoning)]: A log pi(reasoning) + R log pi(answer).

    loss = mean over rollouts of -sum_t A_t log pi(a_t), A by `ReasonThenAnswer`. A rollout is
    reasoning that was sampled and the reference answer, recited in place of the policy's own.
    """
    # The paper weighs the answer's term with R; the released code also has A and 1 there, and by
    # default log R as the reward. The group is our choice.
    return Method(
        sample=Independent(group),
        credit=ReasonThenAnswer(),
        loss=Reinforce(),
        weigh=sequence_sum,
    )
