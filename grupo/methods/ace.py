"""ACE: errors made likelier by training are punished more. Xu et al., 2026, arXiv:2602.21420."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import drift
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Overconfident Errors Need Stronger Correction: Asymmetric Confidence Penalties for RL",
    use="pass@1 grows and pass@k shrinks: the policy has settled on some wrong ways.",
    checked=("golden", "laws", "run"),
    catalogue=("ace-confidence",),
)


def softplus(c: Tensor) -> Tensor:
    """log(1 + e^c): smooth about 0, where ReLU is not."""
    return torch.nn.functional.softplus(c)


@piece
class OverconfidencePenalty:
    """x (1 + alpha phi(c)) where x < 0, with c = log pi_old(y) - log pi_ref(y) of the rollout."""

    alpha: float
    phi: Callable[[Tensor], Tensor] = softplus

    @property
    def needs(self) -> frozenset[str]:
        """The reference, which is the policy that training began with."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        c = drift(batch).to(x)
        return torch.where(x < 0, x * (1 + self.alpha * self.phi(c)), x)


def ace(group: int = 8, alpha: float = 1.0, clip: float = 0.2) -> Method:
    """A' = A (1 + `alpha` softplus(c)) for wrong answers, A' = A for right ones; A as in GRPO.

    c, in nats and summed over the answer, says how much likelier training has made it.
    """
    # `alpha` is our choice: its value was not seen. Softplus is the paper's phi, for its ablation
    # prefers it to ReLU: OverconfidencePenalty(alpha, torch.relu).
    return Method(
        sample=Independent(group),
        credit=chain(Center(), ScaleByStd(), OverconfidencePenalty(alpha)),
        loss=Clip(clip, clip),
    )
