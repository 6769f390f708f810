"""G-OPD: go on where the teacher was heading when it stops. Yang et al., 2026, arXiv:2602.12125."""

from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Learning beyond Teacher: Generalized On-Policy Distillation with Reward Extrapolation",
    use="Distil from a teacher that came from a known base by RL, and pass it.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("g-opd-exopd",),
)


@component
class ExtrapolatedDistillation:
    """`scale` (log teacher - log base) - (log pi_old - log base): a reward and a KL, per action."""

    teacher_scale: float
    teacher: str = "teacher"
    base: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        """What the teacher and the base said of the actions."""
        return frozenset({f"logp@{self.teacher}", f"logp@{self.base}"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        base = batch.signals[f"logp@{self.base}"]
        gained = batch.signals[f"logp@{self.teacher}"] - base
        A = self.teacher_scale * gained - (batch.old_logp - base)
        return A.masked_fill(~batch.mask, 0.0).to(x)


def g_opd(group_size: int = 1, teacher_scale: float = 1.25, clip_eps: float = 0.2) -> Method:
    """A_t = `scale` (T - b) - (s - b): T the teacher's log-probability, b the base's, s its own.

    At `scale` 1 the base cancels and on-policy distillation is left, A_t = T - s; above 1 it
    extrapolates. The verifier's reward is not read. The base is the reference: the student as
    training found it, or the teacher before its own RL (a recipe may name it "ref").
    """
    # A is neither centred nor clipped, and the surrogate is PPO's with a token mean, as released
    # (RUCBM/G-OPD), with one update a step, where `clip` does nothing.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ExtrapolatedDistillation(teacher_scale),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
