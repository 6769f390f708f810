"""Critique-GRPO: one second attempt in each group. Zhang et al., 2025, arXiv:2506.03106."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import FixedLength
from grupo.algo.data_source import MOVED, elsewhere
from grupo.algo.losses import EntropyBonus, Loss, Reweighted
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.methods.luffy import Shaped
from grupo.rollouts.samplers import Independent, Refined

PAPER = Paper(
    title="Critique-GRPO: Advancing LLM Reasoning with Natural Language and Numerical Feedback",
    use="The model fails alone and succeeds once it is told what was wrong.",
    checked=("golden", "laws", "run"),
    example="critique_grpo(length=64)",
    catalogue=("critique-grpo",),
)


@piece
class ByContext(Loss):
    """`own` where the action was drawn behind this prompt, `theirs` where behind another."""

    own: Loss
    theirs: Loss

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | MOVED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.where(elsewhere(batch), self.theirs(pi, batch), self.own(pi, batch))

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.own.report(pi, batch), **self.theirs.report(pi, batch)}


def critique_grpo(
    length: int, group: int = 8, shape: float = 0.1, entropy: float = 0.001
) -> Method:
    """-r A on own tokens, -f(pi) A on those of the second attempt, f(p) = p / (p + `shape`).

    Each of `group` answers is criticised (right or wrong, and the right answer) and tried again;
    the best second attempt takes the first place of the group, behind the plain question.
    A = r - mean(r); sums over tokens are divided by `length`; `entropy` times H is paid.
    """
    # As the release, whose clip is off and which keeps any refinement where none is right; the best
    # is our choice. Critiques of a stronger model: Refined(..., critique=yours).
    loss = ByContext(Reweighted(ratios.token), Shaped(shape)) + EntropyBonus(entropy)
    sample = Refined(Independent(group))
    return Method(sample=sample, credit=Center(), loss=loss, weigh=FixedLength(length))
