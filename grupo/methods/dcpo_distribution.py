"""Distribution DCPO: reinforce a tempered copy of the policy. Li et al., 2026, arXiv:2601.12730."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.kl_in_reward import TemperatureRatioBonus
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.controllers import LastValue
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dcpo_distribution(
    group_size: PositiveInt = 5, target_entropy: NonNegative = 0.25, clip_eps: NonNegative = 0.2
) -> Method:
    """A = (1 - a) A_grpo + a b rho: REINFORCE towards a tempered policy, by importance weights.

    rho = old at 1.2 (while the entropy of the last update is at most target_entropy) or 0.8 times
    its temperature / old; b = 1 for correct rollouts, else 0; a = a' / (1 + a') with
    a' = min(|target_entropy - entropy|, 0.1) / (fraction correct). Then PPO's clip and the mean
    over all tokens; no KL.

    A rollout is correct if its score is above 0.05. A step makes 4 updates, one on each of 4
    minibatches.

    Args:
        group_size: rollouts per task (authors' configuration: 5).
        target_entropy: entropy to stay near, in nats (paper: 0.25 is best; script: 0.5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    bonus = TemperatureRatioBonus(LastValue("policy/entropy", 0.0), target_entropy)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), bonus),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
    use="Entropy should stay near a value, without samples from another distribution.",
    tags=("entropy", "exploration"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("dcpo-distribution",),
    source=Source(
        "code",
        "597358816/DCPO, verl/trainer/ray_trainer.py, examples/config.yaml and "
        "examples/qwen-math-7b-DCPO.sh",
    ),
    plan="examples/config.yaml: rollout batch 512, global batch 128 prompts: 4 updates per step",
    missing=(
        "The dual clip of 3 of the release.",
        "Sampling with top_p 0.99, which is a choice of the recipe.",
    ),
    deviations=(
        (
            "Where no rollout is correct the release divides by 0; here a is 0. The entropy is 0 "
            "before the first update, as released."
        ),
        "The mean is over the tokens of a minibatch, in the release of 4 rollouts at a time.",
        (
            "The entropy is that over the vocabulary; the release takes minus the mean "
            "log-probability of the trained tokens."
        ),
    ),
    audit=(
        "bonus, thresholds, temperatures, token mean and batch sizes compared with ray_trainer.py, "
        "core_algos.py and config.yaml"
    ),
)
