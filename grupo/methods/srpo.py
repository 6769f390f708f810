"""SRPO: RL on correct rollouts, distillation on wrong ones. Li et al., 2026, arXiv:2604.02288."""

from grupo.algo.losses import Clip, SelfDistillOnFailure, TeacherConfidence
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


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
    return Method(
        sampler=GroupSampler(group_size),
        loss=SelfDistillOnFailure(Clip(clip_eps, clip_eps), distill_coef),
        aggregation=TeacherConfidence(entropy_temperature),
        reference=ReferenceUpdate(0.05),
    )


PAPER = Paper(
    title="Unifying Group-Relative and Self-Distillation Policy Optimization via Sample Routing",
    use="The policy recognises its mistakes once it is shown a correct answer.",
    tags=("distillation", "hints"),
    checked=("golden", "properties", "reference"),
    catalogue=("srpo-sample-routed",),
    source=Source(
        "abstract",
        (
            "the abstract for routing and w; lasgroup/SDPO, on which the paper builds, for D and "
            "the moving average"
        ),
    ),
    plan=(
        "not stated in any source that was opened; one update per step, as in SDPO's sdpo.yaml "
        "(32 and 32)"
    ),
    deviations=(
        "The forms of routing and of w are our choice.",
        (
            "D is over the whole vocabulary; SDPO keeps the student's 100 likeliest tokens and a "
            "tail."
        ),
    ),
    audit=(
        "D and the rate of the moving average compared with SDPO's configuration; the rest with "
        "the catalogue's row"
    ),
)
