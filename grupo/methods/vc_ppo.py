"""VC-PPO: the value is fitted to the undecayed outcome. Yuan et al., 2025, arXiv:2503.01491."""

from grupo.algo.advantages.gae import GAE, VALUE_HEAD
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.core.aux_heads import FeatureHead
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def vc_ppo(
    group_size: PositiveInt = 1,
    gae_lambda: Fraction = 0.95,
    clip_eps: NonNegative = 0.2,
    value_head: FeatureHead = VALUE_HEAD,
) -> Method:
    """PPO with decoupled GAE: lambda = gae_lambda for advantages, 1 for the value's target.

    A_t = sum_k gae_lambda^k d_(t+k), d_t = r_t + V_(t+1) - V_t; the value is fitted to r.

    Args:
        group_size: rollouts per task (our choice).
        gae_lambda: lambda of GAE (paper: 0.95).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
        value_head: linear on detached features, on shared ones, or on a model of its own.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=GAE(gamma=1.0, gae_lambda=gae_lambda, value_head=value_head),
        loss=Clip(clip_eps, clip_eps) + OutcomeValueLoss(),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="What's Behind PPO's Collapse in Long-CoT? Value Optimization Holds the Secret",
    use="PPO on long answers, whose early tokens receive nothing of the reward.",
    tags=("critic", "length"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "public reviews that quote decoupled GAE and the pretraining of the value",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The phase before, in which the value alone is trained on rollouts of the frozen "
            "policy: a method cannot express it."
        ),
    ),
    deviations=(
        "By default the critic is linear on detached features, not a model of its own: value_head.",
        "The mean over all tokens and the clip are our choice: no source that was opened has them.",
    ),
    audit="formula compared with public reviews",
    shown=("docs/claims.md#tokens",),
)
