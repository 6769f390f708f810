"""SRPO: RL on correct rollouts, distillation on wrong ones. Li et al., 2026, arXiv:2604.02288."""

from grupo.algo.losses import Clip, SelfDistillOnFailure, TeacherConfidence
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Unifying Group-Relative and Self-Distillation Policy Optimization via Sample Routing",
    use="The policy recognises its mistakes once it is shown a correct answer.",
    tags=("distillation", "hints"),
    checked=("golden", "properties", "reference"),
    catalogue=("srpo-sample-routed",),
)


def srpo(
    group_size: PositiveInt = 8,
    distill_coef: NonNegative = 1.0,
    entropy_temperature: Positive = 1.0,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO, but a wrong rollout with a correct sibling learns from a teacher that was shown the
    sibling.

    loss = mean of the clipped surrogate + distill_coef sum_t w_t D_t / sum_t w_t over those
    rollouts, D = min(R, 2) JSD(pi, teacher), w = exp(-H / entropy_temperature), H the teacher's
    entropy. The teacher is a moving average of the policy with a correct answer of the group in its
    prompt: AuxModel("hinted", "ref", a view).

    Args:
        group_size: rollouts per task.
        distill_coef: weight of the distillation (our choice).
        entropy_temperature: temperature of the entropy weights (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # D and the rate 0.05 of the average are those of lasgroup/SDPO, on which the paper builds; SDPO
    # keeps the student's 100 likeliest tokens and a tail, here the whole vocabulary. Of the routing
    # and of w only the abstract was available: their form is our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=SelfDistillOnFailure(Clip(clip_eps, clip_eps), distill_coef),
        aggregation=TeacherConfidence(entropy_temperature),
        reference=ReferenceUpdate(0.05),
    )
