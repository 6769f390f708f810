"""ACE: errors made likelier by training are punished more. Xu et al., 2026, arXiv:2602.21420."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import ref_log_ratio
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Overconfident Errors Need Stronger Correction: Asymmetric Confidence Penalties for RL",
    use="pass@1 grows and pass@k shrinks: the policy has settled on some wrong ways.",
    checked=("golden", "laws", "run"),
    catalogue=("ace-confidence",),
)


def softplus(c: Tensor) -> Tensor:
    """log(1 + e^c): smooth about 0, where ReLU is not."""
    return torch.nn.functional.softplus(c)


@component
class OverconfidencePenalty:
    """x (1 + alpha phi(c)) where x < 0, with c = log pi_old(y) - log pi_ref(y) of the rollout."""

    penalty_coef: float
    penalty_fn: Callable[[Tensor], Tensor] = softplus

    @property
    def required_signals(self) -> frozenset[str]:
        """The reference, which is the policy that training began with."""
        return frozenset({"logp@ref"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        c = ref_log_ratio(batch).to(x)
        return torch.where(x < 0, x * (1 + self.penalty_coef * self.penalty_fn(c)), x)


def ace(group_size: int = 8, penalty_coef: float = 1.0, clip_eps: float = 0.2) -> Method:
    """A' = A (1 + `penalty_coef` softplus(c)) for wrong answers, A' = A for right ones; A as in GRPO.

    c, in nats and summed over the answer, says how much likelier training has made it.
    """
    # `penalty_coef` is our choice: its value was not seen. Softplus is the paper's phi, for its ablation
    # prefers it to ReLU: OverconfidencePenalty(alpha, torch.relu).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), OverconfidencePenalty(penalty_coef)),
        loss=Clip(clip_eps, clip_eps),
    )
