"""AEPO: entropy held at a target by tempered REINFORCE. Wang et al., 2025, arXiv:2510.08141."""

import torch
from torch import Tensor

from grupo.algo.advantages import ByPart, Center, Regrouped, ScaleByStd, chain
from grupo.algo.losses import Clip, Only, Reinforce
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.controllers import Thermostat
from grupo.core.paper import Paper
from grupo.core.schedules import varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithTempered

PAPER = Paper(
    title="Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-"
    "tuning",
    use="Entropy has to stay at a value that you choose.",
    checked=("golden", "laws", "run"),
    catalogue=("aepo",),
)


@piece
class OnlyGood:
    """`weight` for tempered rollouts of A > 0.05, 0 for the other tempered ones; own keep A."""

    weight: float
    reads_parts = ("tempered",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        good = (x > 0.05).to(x) * self.weight
        return torch.where(batch.parts["tempered"] > 0, good, x)


def tempered(batch: Batch) -> Tensor:
    """Which rows were drawn at another temperature, (N, 1)."""
    return (batch.parts["tempered"] > 0)[batch.rollout, None]


def own(batch: Batch) -> Tensor:
    """The others."""
    return ~tempered(batch)


def aepo(group: int = 8, more: int = 2, target: float = 0.5, hot: float = 1.2) -> Method:
    """grad J = grad J_GRPO + alpha E_{o ~ pi^T}[R(o) grad log pi(o)].

    T = `hot` while the last step's entropy is at most `target`, else 0.8: reinforcing what is hot
    raises entropy, what is cold lowers it. `more` rollouts are tempered; A > 0.05 counts 1, or 1/2.
    """
    # The authors sample a quarter of the prompts again, keep at most 60 rollouts of them (30 where
    # it is cold) and let them replace others; here every group has a quarter more, without ratios.
    normalised = Regrouped(chain(Center(), ScaleByStd()), ByPart("tempered"))
    return Method(
        sample=WithTempered(Independent(group), more, varying(Thermostat(target, hot, 0.8))),
        credit=chain(normalised, OnlyGood(varying(Thermostat(target, 1.0, 0.5)))),
        loss=Only(Clip(), own) + Only(Reinforce(), tempered),
    )
