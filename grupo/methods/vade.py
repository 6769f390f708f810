"""VADE: samples tasks by their expected information. Hu et al., 2025, arXiv:2511.18902."""

from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import Thompson
from grupo.rollouts.samplers import GroupSampler


def vade(
    group_size: PositiveInt = 8,
    decay_per_group: Fraction = 0.9,
    decay_per_step: Fraction = 0.999,
    pool_factor: PositiveInt = 16,
) -> Method:
    """GRPO on the tasks of greatest p (1 - p)^2 in a pool, p ~ Beta(a + 1, b + 1).

    a <- decay_per_group a + s, b <- decay_per_group b + G - s after a group with s of G correct,
    and at every step a <- decay_per_step a, b <- decay_per_step b.

    Args:
        group_size: rollouts per task (our choice).
        decay_per_group: factor on a and b at each group of the task (our choice).
        decay_per_step: factor on a and b at each step (our choice).
        pool_factor: size of the pool, in multiples of the tasks of a step (our choice).
    """
    # With these constants, of 1,000 tasks of which 800 never vary, four in five of those sampled do
    # vary.
    return Method(
        curriculum=Thompson(decay_per_group, decay_per_step, pool_factor),
        sampler=GroupSampler(group_size),
    )


PAPER = Paper(
    title="VADE: Variance-Aware Dynamic Sampling via Online Sample-Level Difficulty Estimation for "
    "Multimodal RL",
    use="Most tasks are always or never solved, and each recurs often.",
    tags=("curriculum",),
    checked=("golden", "properties", "run"),
    catalogue=("vade",),
    source=Source(
        "third_party",
        "the project page VADE-RL.github.io: posterior and information gain",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("GSPO, with which the paper also trains.",),
    deviations=(
        "The forms and coefficients of the two decays and the size of the pool are our choice.",
        "The clip of 0.2, the mean over answers and no KL divergence are our choice.",
    ),
    audit=(
        "posterior, gain and components compared with the catalogue's row, which cites the "
        "project page, and the abstract"
    ),
    shown=("docs/claims.md#difficulty",),
)
