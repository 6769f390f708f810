"""KL in the reward: its weight follows a target. Ziegler et al., 2019, arXiv:1909.08593."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.losses import KL, Clip, MetricsOnly
from grupo.algo.minibatches import Updates
from grupo.core.controllers import AdaptiveKL
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def kl_in_reward(
    group_size: PositiveInt = 8,
    initial_kl_coef: NonNegative = 0.1,
    target_kl: NonNegative = 0.02,
    gain: NonNegative = 0.1,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO on R = r - b sum_t (log pi_old - log ref), with an adaptive weight b.

    b <- b (1 + gain clip(KL / target_kl - 1, -0.2, 0.2)) after every step (section 2.2). The KL is
    measured against the current policy and not differentiated.

    A step has 4 updates, each on the whole batch.

    Args:
        group_size: rollouts per task.
        initial_kl_coef: b of the first step (our choice; launch.py: 0.15).
        target_kl: target KL divergence per token, in nats (our choice; the paper's is per answer).
        gain: K_b in the paper (paper: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    kl_coef = AdaptiveKL(initial_kl_coef, target_kl, gain)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(KLInReward(kl_coef), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + MetricsOnly(KL()),
        updates=Updates(epochs=4),
    )


PAPER = Paper(
    title="Fine-Tuning Language Models from Human Preferences",
    use="A learned reward should be maximised only within a distance of the initial policy.",
    tags=("kl", "reward"),
    trl="RLOOConfig(beta=...) pays a constant price in the reward; no controller",
    verl="algorithm.use_kl_in_reward=True, kl_ctrl.type=adaptive (per token, before GAE)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "openai/lm-human-preferences: lm_human_preferences/train_policy.py and launch.py; "
        "section 2.2 of the paper for the gain",
    ),
    plan="train_policy.py: noptepochs 4 and nminibatches 1, so 4 updates on the whole batch",
    missing=(
        "The critic (clipped value loss, GAE) and the whitening of rewards and advantages.",
        "The learned reward model and its training on human preferences.",
        "Sampling at a temperature of 0.7, and the reward of -1 for an answer without a full stop.",
        "The code's gain, batch / horizon = 512 / 10,000: about 0.05.",
    ),
    deviations=(
        "The group is the baseline: the paper trains by PPO with a value function.",
        "The price of an answer's tokens is one sum in its reward: the code charges each token, "
        "and GAE carries the price to earlier tokens.",
        "The mean is over answers: the code's answers have one length.",
        (
            "target_kl is per token: the paper's is per answer (6 nats in launch.py), so "
            "suitable values depend on the length of answers."
        ),
        "The controller reads k3 of the policy in training, a mean over the updates; the code "
        "reads the log-ratio of the policy that sampled.",
    ),
    audit=(
        "controller (clip of the error at 0.2, once per rollout batch), clip range and plan"
        " compared with train_policy.py"
    ),
)
