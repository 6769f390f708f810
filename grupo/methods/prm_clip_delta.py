"""Clip and Delta: process rewards that nobody can farm. Gao et al., 2024, arXiv:2410.15115."""

from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.gae import GAE
from grupo.algo.advantages.token_table import at_end, later
from grupo.algo.advantages.turn_table import acted, at_ends_of_turns, in_steps, label_of_turns
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import FitValue
from grupo.algo.minibatches import Passes
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="On Designing Effective RL Reward at Training Time for LLM Reasoning",
    use="A process reward model is there, and its policy has learned to repeat easy steps.",
    checked=("golden", "laws", "run"),
    catalogue=("prm-clip-delta",),
)


@piece
class ClipDelta:
    """x at the last action, and `alpha` d_k at the end of step k of K.

    c_k = min(p_k - eta, 0) of the score p_k; d_k = c_k - c_(k+1), d_(K-1) = c_(K-1), d_K = 0. What
    is still to come at step k is c_k, however many steps follow.
    """

    eta: float
    alpha: float

    @property
    def needs(self) -> frozenset[str]:
        """The number of each action's step, from 0 on, and that step's score on all its actions."""
        return frozenset({"mark/step", "mark/prm"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        steps = in_steps(batch)
        there = acted(steps)
        c = label_of_turns(batch.seen["mark/prm"], steps).sub(self.eta).clamp(max=0)
        c = c.where(there & (later(there.double()) > 0), 0.0)  # 0 in the last step
        return at_end(x, batch) + at_ends_of_turns(self.alpha * (c - later(c)), steps)


def prm_clip_delta(group: int = 1, eta: float = 0.5, alpha: float = 0.05) -> Method:
    """PPO whose reward is success plus `alpha` times clipped differences of a step's scores.

    mark/step numbers the steps of an answer, mark/prm holds the score of its prefix up to the step.
    """
    # Clip first, then Delta, as the paper's best; its text was not seen: `eta` and `alpha` are our
    # choice, so chosen that most sound steps score above `eta`.
    credit = chain(ClipDelta(eta, alpha), GAE(gamma=1.0, lam=0.95))
    loss, plan = Clip(0.2, 0.2) + FitValue(), Passes(epochs=3)
    return Method(sample=Independent(group), credit=credit, loss=loss, weigh=token_mean, plan=plan)
