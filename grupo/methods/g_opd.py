"""G-OPD: distillation that extrapolates beyond the teacher. Yang et al., 2026, arXiv:2602.12125."""

from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def g_opd(
    group_size: PositiveInt = 1, teacher_scale: NonNegative = 1.25, clip_eps: NonNegative = 0.2
) -> Method:
    """A_t = teacher_scale (T - b) - (s - b), the log-probabilities of teacher, base and policy.

    At teacher_scale 1 the base cancels and A_t = T - s is on-policy distillation; above 1 it
    extrapolates. The reward is not read. The base is the reference policy: the initial student, or
    the teacher before its RL (a recipe may define "ref").

    Args:
        group_size: rollouts per task.
        teacher_scale: weight of the teacher's gain over the base (paper: 1.25).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ExtrapolatedDistillation(teacher_scale),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


@component
class ExtrapolatedDistillation:
    """teacher_scale (log teacher - log base) - (log pi_old - log base), per token.

    Args:
        teacher_scale: weight of the teacher's gain over the base.
        teacher: name of the teacher among the auxiliary models.
        base: name of the teacher's base model.
    """

    teacher_scale: NumberOrSchedule
    teacher: str = "teacher"
    base: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.teacher}", f"logp@{self.base}"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        base = batch.signals[f"logp@{self.base}"]
        gained = batch.signals[f"logp@{self.teacher}"] - base
        A = self.teacher_scale * gained - (batch.old_logp - base)
        return A.masked_fill(~batch.mask, 0.0).to(x)


PAPER = Paper(
    title="Learning beyond Teacher: Generalized On-Policy Distillation with Reward Extrapolation",
    use="The teacher was trained by RL from a known base, and the student should surpass it.",
    tags=("distillation", "process-reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("g-opd-exopd",),
    source=Source(
        "code",
        "RUCBM/G-OPD, verl/verl/workers/actor/dp_actor.py and "
        "verl/examples/g_opd/run_qwen3-4b-g-opd.sh",
    ),
    plan=(
        "run_qwen3-4b-g-opd.sh: train batch 1024, minibatch 1024 prompts: one update per step, at "
        "which the clip never acts"
    ),
    missing=(
        "Several teachers, of which a tag of the task selects one.",
        "Truncated importance weights between sampler and trainer with a cap of 5.",
        "The dual clip of 3 of the release's configuration, which never acts at one update.",
    ),
    deviations=(
        (
            "The mean is over the tokens of a minibatch; the script's micro-batches have one answer"
            " each, so that its token mean is a mean of row means."
        ),
    ),
    audit="advantage, lambda, group, KL and batch sizes compared with dp_actor.py and the script",
)
