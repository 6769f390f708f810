"""ALP: length costs more on tasks that are often solved. Xiang et al., 2025, arXiv:2506.05256."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def alp(group_size: PositiveInt = 16, length_coef: NonNegative = 1e-7) -> Method:
    """r = [correct] - length_coef L max(p, 1 / K), for incorrect answers too; A = (r - mean) / std.

    p is the fraction of the group's K rollouts that are correct. Reward term: "correct".

    Args:
        group_size: K, rollouts per task (16 to 32 by a public note).
        length_coef: cost per token (beta = 1e-7 by public notes, without their factor N).
    """
    advantage = chain(EaseScaledLengthPenalty(length_coef), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=advantage)


@component
class EaseScaledLengthPenalty:
    """x - length_coef L max(p, 1 / K), p the fraction of the group's K rollouts that are correct.

    Args:
        length_coef: cost per token at p = 1.
        reward_term: name of the reward term that measures correctness.
    """

    length_coef: NumberOrSchedule
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean((batch.reward_terms[self.reward_term] > 0.5).to(x), batch.group)
        return x - self.length_coef * batch.lengths * p.maximum(1 / group_ops.count(x, batch.group))


PAPER = Paper(
    title="Just Enough Thinking: Efficient Reasoning with Adaptive Length Penalties"
    " Reinforcement Learning",
    use="Easy tasks should be answered briefly, hard ones at any length.",
    tags=("length", "curriculum", "reward"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party", "public notes that quote the reward with beta and N; reviews; the abstract"
    ),
    plan=(
        "a batch of 512 by public notes, which do not state the number of updates; one update per "
        "step"
    ),
    deviations=(
        (
            "N is left out: the notes that were opened multiply by it, but disagree on its meaning."
            " The penalty is small. Where all answers are correct it is still the whole advantage."
        ),
        "The clip of 0.2 and the mean over answers are GRPO's: no note that was opened has them.",
    ),
    audit=(
        "formula and beta compared with public notes that quote them, of which one calls N the "
        "longest trace and doubts its own copy, and with the abstract"
    ),
    shown=("docs/claims.md#padded",),
)
