"""T-PPO: PPO on answers that are cut and not finished yet. Fan et al., 2025, arXiv:2506.15050."""

from grupo.algo.advantages.gae import ExtendedGAE
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Truncated Proximal Policy Optimization",
    use="Waiting for the longest answer costs more than learning from the rest.",
    checked=("golden", "laws", "run"),
    catalogue=("t-ppo",),
)


@component
class FinishedValueLoss(Loss):
    """(V - r)^2 on rollouts that are finished, for the others' outcome is not known."""

    reward_term: str = "cut"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that is 1 for a rollout that was cut, 0 for a finished one."""
        return (self.reward_term,)

    @property
    def required_signals(self) -> frozenset[str]:
        return OutcomeValueLoss().required_signals

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (
            OutcomeValueLoss()(pi, batch)
            * (batch.reward_terms[self.reward_term] == 0)[batch.rollout, None]
        )


def t_ppo(
    group_size: int = 8, gae_lambda: float = 0.95, clip_low: float = 0.2, clip_high: float = 0.28
) -> Method:
    """The policy learns from all answers by EGAE, the value from the finished ones by the outcome.

    With gamma = 1 the last d of a cut answer is 0. reward_terms["cut"] says which are cut.
    """
    # Of the equations only the rule for V(s_l) was seen; constants are our choice. The value's mean
    # is over all actions, not over those of finished rollouts. To go on with a cut answer in the
    # next step is the sampler's part.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=ExtendedGAE(gae_lambda=gae_lambda),
        loss=Clip(clip_low, clip_high) + FinishedValueLoss(),
        aggregation=token_mean,
    )
