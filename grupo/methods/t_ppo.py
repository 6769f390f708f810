"""T-PPO: PPO on truncated, unfinished answers. Fan et al., 2025, arXiv:2506.15050."""

from grupo.algo.advantages.gae import ExtendedGAE
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Truncated Proximal Policy Optimization",
    use="Waiting for the longest answer costs more than training on the rest.",
    tags=("critic", "length"),
    checked=("golden", "properties", "run"),
    catalogue=("t-ppo",),
)


@component
class FinishedValueLoss(Loss):
    """(V - r)^2 on finished rollouts; the outcome of the others is not known yet.

    Args:
        reward_term: reward term that is 1 for a truncated rollout, else 0.
    """

    reward_term: str = "cut"

    @property
    def requires(self) -> Requires:
        return Requires(recomputed_signals=("value",), reward_terms=(self.reward_term,))

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (
            OutcomeValueLoss()(pi, batch)
            * (batch.reward_terms[self.reward_term] == 0)[batch.rollout, None]
        )


def t_ppo(
    group_size: PositiveInt = 8,
    gae_lambda: Fraction = 0.95,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """The policy is trained on all answers by EGAE, the value function on finished ones by the
    outcome.

    With gamma = 1 the last TD error of a truncated answer is 0. Reward terms: "cut" is 1 for
    truncated answers.

    Args:
        group_size: rollouts per task (our choice).
        gae_lambda: lambda of GAE (our choice).
        clip_low: ratios are clipped below at 1 - clip_low (our choice).
        clip_high: ratios are clipped above at 1 + clip_high (our choice).
    """
    # Of the equations only the rule for V(s_l) was available. The value's mean is over all tokens,
    # not those of finished rollouts. Continuing a truncated answer in the next step is left to the
    # sampler.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ExtendedGAE(gae_lambda=gae_lambda),
        loss=Clip(clip_low, clip_high) + FinishedValueLoss(),
        aggregation=token_mean,
    )
