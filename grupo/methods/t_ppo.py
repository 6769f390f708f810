"""T-PPO: PPO on answers that are cut and not finished yet. Fan et al., 2025, arXiv:2506.15050."""

from grupo.algo.advantages.gae import ExtendedGAE
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import FitOutcome
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Truncated Proximal Policy Optimization",
    use="Waiting for the longest answer costs more than learning from the rest.",
    checked=("golden", "laws", "run"),
    catalogue=("t-ppo",),
)


@piece
class FitFinished(Loss):
    """(V - r)^2 on rollouts that are finished, for the others' outcome is not known."""

    part: str = "cut"

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that is 1 for a rollout that was cut, 0 for a finished one."""
        return (self.part,)

    @property
    def needs(self) -> frozenset[str]:
        return FitOutcome().needs

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return FitOutcome()(pi, batch) * (batch.parts[self.part] == 0)[batch.rollout, None]


def t_ppo(group: int = 8, lam: float = 0.95, low: float = 0.2, high: float = 0.28) -> Method:
    """The policy learns from all answers by EGAE, the value from the finished ones by the outcome.

    With gamma = 1 the last d of a cut answer is 0. parts["cut"] says which are cut.
    """
    # Of the equations only the rule for V(s_l) was seen; constants are our choice. The value's mean
    # is over all actions, not over those of finished rollouts. To go on with a cut answer in the
    # next step is the sampler's part.
    return Method(
        sample=Independent(group),
        credit=ExtendedGAE(lam=lam),
        loss=Clip(low, high) + FitFinished(),
        weigh=token_mean,
    )
