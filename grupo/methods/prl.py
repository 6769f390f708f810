"""PRL: the KL still to come is charged step by step. Yao et al., 2026, arXiv:2601.10201."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import discounted, lay_out, line_up
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="PRL: Process Reward Learning Improves LLMs' Reasoning Ability",
    use="Credit for steps without a process reward model, and with a reference to stay near.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("prl-process-reward-learning",),
)


@piece
class FutureKL:
    """x - S_e / eta for all actions of a step that ends with action e, S_e = sum_(s >= e) l_s.

    l = log pi_old - log pi_ref; a step is `step` actions long, the last one what is left.
    """

    eta: float
    step: int

    @property
    def needs(self) -> frozenset[str]:
        """The reference."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        drift = line_up(batch.old_logp - batch.seen["logp@ref"], batch)
        S = discounted(drift, 1.0)
        t = torch.arange(S.shape[1]).expand_as(S)
        end = (t // self.step + 1) * self.step - 1
        last = batch.lengths[:, None].long() - 1
        A = x[:, None] - S.gather(1, torch.minimum(end, last).clamp(min=0)) / self.eta
        return lay_out(A, batch)


def prl(group: int = 5, eta: float = 200.0, step: int = 256, clip: float = 0.2) -> Method:
    """A_t = (r - mean r) / (std r + 1e-6) - S_e / `eta`, e the end of the step that holds t.

    S_e is how much likelier the policy makes the rest of the answer, from e on, than the reference
    does. `eta` -> infinity is GRPO.
    """
    # The defaults and steps of equal length are those of runs/run_grpo.sh of
    # MaxwellJryao/Process-Reward-Learning; it can also split at newlines.
    credit = chain(Center(), ScaleByStd(), FutureKL(eta, step))
    return Method(sample=Independent(group), credit=credit, loss=Clip(clip, clip), weigh=token_mean)
