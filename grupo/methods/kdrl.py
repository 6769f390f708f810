"""KDRL: a teacher and a reward pull on the same rollouts. Xu et al., 2025, arXiv:2506.02208."""

from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="KDRL: Post-Training Reasoning LLMs via Unified Knowledge Distillation and "
    "Reinforcement Learning",
    use="There is a stronger teacher with your vocabulary, and a reward that may outgrow it.",
    checked=("golden", "laws", "run"),
    catalogue=("kdrl",),
)


def kdrl(
    group_size: int = 8,
    initial_kl_coef: float = 5e-3,
    final_kl_coef: float = 1e-3,
    clip_eps: float = 0.2,
) -> Method:
    """GRPO, and k2 against a teacher in place of a KL against a reference.

    loss = mean over tokens of -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A) + b k2
    with k2 = (log pi - log teacher)^2 / 2, whose gradient is that of KL(pi, teacher) on policy, and
    b falling in a straight line from `initial_kl_coef` to `final_kl_coef`. The recipe names the "teacher".
    """
    # The objective and the choice of k2 were seen in reviews of the paper, b's ends in one of them.
    # On policy there is nothing to correct; off policy CorrectedKL(other="teacher") is unbiased.
    # The masked variants distil where the reward failed: Only(KL(k2, "teacher"), Wrong()) for each
    # rollout, AllWrong() for whole groups. `group_size` and `clip_eps` are our choice.
    loss = Clip(clip_eps, clip_eps) + Linear(initial_kl_coef, final_kl_coef) * KL(k2, "teacher")
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)
