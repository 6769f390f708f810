"""KL in the reward: distance at an adaptive price. Ziegler et al., 2019, arXiv:1909.08593."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.losses import KL, Clip, MetricsOnly
from grupo.core.controllers import AdaptiveKL
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Fine-Tuning Language Models from Human Preferences",
    use="A learned reward is to be climbed only so far from where the policy came from.",
    trl="RLOOConfig(beta=...) pays a constant price in the reward; no controller",
    verl="algorithm.use_kl_in_reward=True, kl_ctrl.type=adaptive (per token, before GAE)",
    checked=("golden", "laws", "reference", "run"),
)


def kl_in_reward(
    group_size: int = 8,
    initial_kl_coef: float = 0.1,
    target_kl: float = 0.02,
    gain: float = 0.1,
    clip_eps: float = 0.2,
) -> Method:
    """R = r - b sum_t (log pi_old - log ref) of each rollout, and GRPO on R.

    b <- b (1 + `gain` clip(KL / `target_kl` - 1, -0.2, 0.2)) after every step, from `initial_kl_coef` on
    (section 2.2). The KL is measured against the current policy and not differentiated.
    """
    # The paper trains by PPO with a value function; the group is the baseline here. `gain` is its
    # K_b; its target is of a whole answer, this one of an action, in nats: `initial_kl_coef` and `target_kl` are
    # our choice, and depend on how long answers are.
    price = AdaptiveKL(initial_kl_coef, target_kl, gain)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(KLInReward(as_float(price)), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + MetricsOnly(KL()),
    )
