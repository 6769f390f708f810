"""TIC-GRPO: one ratio for the whole rollout, the product. Pang et al., 2025, arXiv:2508.02833."""

from grupo.algo import ratios
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="TIC-GRPO: Provable and Efficient Optimization for Reinforcement Learning from Human "
    "Feedback",
    use="Short rollouts and several updates a step, with the current policy's gradient.",
    tags=("importance-sampling", "clipping"),
    checked=("golden", "properties", "run"),
)


def tic_grpo(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """loss = mean over rollouts of -min(w A, clip(w, 1 - clip_eps, 1 + clip_eps) A), w = prod_t
    r_t.

    w = pi(rollout) / old(rollout) estimates the gradient at the current policy, token ratios that
    at the old one. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task.
        clip_eps: w is clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    # Only abstracts were available: they define the ratio as a product over the rollout; keeping
    # PPO's clip is our reading.
    return Method(sampler=GroupSampler(group_size), loss=Clip(clip_eps, clip_eps, ratios.product))
