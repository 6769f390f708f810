"""ALP: a token costs more where more are right. Xiang et al., 2025, arXiv:2506.05256."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Just Enough Thinking: Efficient Reasoning with Adaptive Length Penalties"
    " Reinforcement Learning",
    use="Easy tasks are to be thought about less, hard ones as long as it takes.",
    checked=("golden", "laws", "run"),
)


@component
class EaseScaledLengthPenalty:
    """x - price L max(p, 1 / K), p the share of the group's K rollouts that are right."""

    length_coef: float
    reward_term: str = "correct"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Who is right: above 1/2."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean((batch.reward_terms[self.reward_term] > 0.5).to(x), batch.group)
        return x - self.length_coef * batch.lengths * p.maximum(1 / group_ops.count(x, batch.group))


def alp(group_size: int = 16, length_coef: float = 1e-7) -> Method:
    """r = [right] - `length_coef` L max(p, 1 / K); who is wrong pays as well. A = (r - mean) / std.

    reward_terms["correct"] says who is right.
    """
    # The paper writes beta / N for the price of a token and reports beta = 1e-7; what N was is not
    # known to us, so it is 1: small, but the whole of the advantage where all are right.
    credit = chain(EaseScaledLengthPenalty(length_coef), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit)
