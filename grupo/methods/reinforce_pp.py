"""REINFORCE++: KL in the reward, whitened over the batch. Hu et al., 2025, arXiv:2501.03262."""

from torch import Tensor

from grupo.algo import divergences
from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import (
    at_last_token,
    discounted_sum,
    from_token_table,
    to_token_table,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def reinforce_pp(
    group_size: PositiveInt = 1, kl_coef: NonNegative = 0.01, clip_eps: NonNegative = 0.2
) -> Method:
    """A_t = whiten(G_t) over all tokens of the batch, G_t = r - kl_coef sum_(s >= t) log(old /
    ref).

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A), R = pi / old.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (paper: 1).
        kl_coef: weight of the KL in the reward (OpenRLHF's default; its last script has 1e-4); 0
            needs no reference.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(ReturnMinusKL(kl_coef), Whiten()) if kl_coef else Whiten(),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


@component
class ReturnMinusKL:
    """G_t = r_t + gamma G_(t+1), with -kl_coef (log old - log ref) per token, the reward at the
    last.

    Args:
        kl_coef: weight of the KL in the reward.
        gamma: discount per token.
    """

    kl_coef: NumberOrSchedule
    gamma: Fraction = 1.0

    requires = Requires(signals=("logp@ref",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        k1 = divergences.k1(batch.old_logp, batch.signals["logp@ref"])
        reward = at_last_token(x.to(batch.reward), batch) - self.kl_coef * k1
        return from_token_table(discounted_sum(to_token_table(reward, batch), self.gamma), batch)


PAPER = Paper(
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage "
    "Normalization",
    use="Prompts are many and varied, with one rollout each.",
    tags=("advantage", "kl"),
    verl="adv_estimator='reinforce_plus_plus', use_kl_in_reward=True",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code", "OpenRLHF, examples/scripts/train_reinforce_llama_ray.sh, removed in May 2025"
    ),
    plan="train_reinforce_llama_ray.sh: rollout batch 1024, train batch 128: 8 updates per step",
    missing=(
        "The normalisation of the reward model's scores (normalize_reward) of the script.",
        "The clamp of the reward to [-10, 10] (reward_clip_range, on by default).",
    ),
    deviations=(
        "The variance of whitening divides by n - 1, OpenRLHF's by n, the number of tokens.",
        "The weight of the KL is 0.01, OpenRLHF's default and the script's until February 2025; its"
        " last version has 1e-4.",
        "The mean is over the tokens of a minibatch, in OpenRLHF of that time over those of a"
        " micro-batch of 16 answers.",
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); group size, KL weight and "
        "batch sizes compared with the script"
    ),
)
