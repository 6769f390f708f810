"""SRPO: rewards teach what is right, hindsight what is wrong. Li et al., 2026, arXiv:2604.02288."""

from grupo.algo.losses import Clip, SelfDistillOnFailure, TeacherConfidence
from grupo.core.paper import Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Unifying Group-Relative and Self-Distillation Policy Optimization via Sample Routing",
    use="The model sees what it did wrong once it is shown a right answer.",
    checked=("golden", "laws", "reference"),
    catalogue=("srpo-sample-routed",),
)


def srpo(
    group_size: int = 8,
    distill_coef: float = 1.0,
    entropy_temperature: float = 1.0,
    clip_eps: float = 0.2,
) -> Method:
    """GRPO, but a wrong rollout with a right sibling learns from a teacher that was shown it.

    loss = mean of the clipped surrogate + `distill_coef` sum_t w_t D_t / sum_t w_t over what is mended,
    D = min(R, 2) JSD(pi, teacher), w = exp(-H / `entropy_temperature`), H the teacher's entropy. The teacher is an
    average of the policy that reads a right answer of the group: Other("hinted", "ref", a view).
    """
    # D and the rate 0.05 of the average are those of lasgroup/SDPO, on which the paper builds; it
    # keeps the student's 100 likeliest tokens and a tail, here it is the whole vocabulary. Of the
    # routing and of w only the abstract was seen: their form, `distill_coef` and `entropy_temperature` are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=SelfDistillOnFailure(Clip(clip_eps, clip_eps), distill_coef),
        aggregation=TeacherConfidence(entropy_temperature),
        reference=ReferenceUpdate(0.05),
    )
