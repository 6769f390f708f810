"""SRPO: RL on correct rollouts, distillation on wrong ones. Li et al., 2026, arXiv:2604.02288."""

from grupo.algo.advantages import Center
from grupo.algo.losses import Clip, SelfDistillOnFailure, TeacherConfidence
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def srpo(
    group_size: PositiveInt = 8,
    entropy_temperature: Positive = 1.0,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """GRPO, but a wrong rollout with a correct sibling learns from a teacher that was shown the
    sibling.

    loss = mean over all tokens of w D for those rollouts, of the clipped surrogate for the others.
    D = min(R, 2) JSD(pi, teacher); w is proportional to exp(-H / entropy_temperature), H the
    teacher's entropy, and has mean 1 (sections 3.1 to 3.3). A = r - mean(r). The teacher is a
    moving average of the policy with a correct answer of the group in its prompt:
    AuxModel("hinted", "ref", a view).

    Args:
        group_size: rollouts per task (paper: 8).
        entropy_temperature: temperature of the entropy weights, 1 / beta of the paper (paper: 1).
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high (paper: 0.28).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=SelfDistillOnFailure(Clip(clip_low, clip_high)),
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
        "paper",
        (
            "sections 3.1 to 4.1 and table 3; compute_self_distillation_loss of lasgroup/SDPO, on "
            "which the paper builds, for D"
        ),
    ),
    plan="table 3: 32 prompts per step in minibatches of 32, one update",
    missing=(
        (
            "The weight of at most 2 that corrects the mismatch between engine and trainer in both "
            "branches (table 3)."
        ),
    ),
    deviations=(
        (
            "A and the clip are those of the experiments (section 4.1 and table 3): section 2.1 "
            "divides A by the std and has one clip width for both sides."
        ),
        (
            "D is over the whole vocabulary; SDPO keeps the student's 100 likeliest tokens and a "
            "tail."
        ),
    ),
    audit=(
        "routing, w, objective and constants compared with a copy of the paper; D, A and the rate "
        "of the moving average with SDPO's code and configuration"
    ),
)
