"""Distribution DCPO: aim at yourself, hotter or colder. Li et al., 2026, arXiv:2601.12730."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.kl_in_reward import TemperatureRatioBonus
from grupo.algo.losses import Clip
from grupo.core.controllers import LastValue
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Distribution-Centric Policy Optimization Dominates Exploration-Exploitation Trade-off",
    use="Entropy is to stay near a number, without samples from anywhere else.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("dcpo-distribution",),
)


def dcpo_distribution(
    group_size: int = 5, target_entropy: float = 0.25, clip_eps: float = 0.2
) -> Method:
    """A = (1 - a) A_grpo + a b rho: REINFORCE towards a tempered policy, by importance weights.

    rho = old at 1.2 or 0.8 times its temperature / old, by whether the entropy of the last update
    is at most `target_entropy` or above; b = 1 where right; a = a' / (1 + a') with
    a' = min(|`target_entropy` - entropy|, 0.1) / (share that is right). Then PPO's clip; no KL.
    """
    # As released (597358816/DCPO, ray_trainer.py): the entropy is 0 before the first update. Where
    # nobody is right the code divides by 0; here a is 0. `target_entropy` is 0.25 at best and 0.5 in the
    # script. "Right" is a score above 0.05.
    towards = TemperatureRatioBonus(as_float(LastValue("policy/entropy", 0.0)), target_entropy)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), towards),
        loss=Clip(clip_eps, clip_eps),
    )
