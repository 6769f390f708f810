"""VADE: tasks drawn by what they may teach. Hu et al., 2025, arXiv:2511.18902."""

from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import Thompson
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="VADE: Variance-Aware Dynamic Sampling via Online Sample-Level Difficulty Estimation for "
    "Multimodal RL",
    use="Most tasks are solved always or never, and each comes back often.",
    checked=("golden", "laws", "run"),
    catalogue=("vade",),
)


def vade(
    group_size: int = 8,
    decay_per_group: float = 0.9,
    decay_per_step: float = 0.999,
    pool_factor: int = 16,
) -> Method:
    """The tasks of greatest p (1 - p)^2 of `pool_factor` times as many, p ~ Beta(a + 1, b + 1).

    a <- `decay_per_group` a + s, b <- `decay_per_group` b + G - s after a group of which s of G are right, and every
    step a <- `decay_per_step` a, b <- `decay_per_step` b. Then GRPO.
    """
    # Neither the form of the two decays nor their constants were seen: both, and `pool_factor`, are
    # our choice, such that of 1,000 tasks of which 800 never vary four in five that come do.
    return Method(
        curriculum=Thompson(decay_per_group, decay_per_step, pool_factor),
        sampler=GroupSampler(group_size),
    )
