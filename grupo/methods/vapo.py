"""VAPO: GAE whose memory grows with the answer. Yue et al., 2025, arXiv:2504.05118."""

from grupo.algo.advantages.gae import LengthAdaptiveGAE
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="VAPO: Efficient and Reliable Reinforcement Learning for Advanced Reasoning Tasks",
    use="Answers of very different lengths, and a value worth its cost.",
    checked=("golden", "laws", "run"),
)


@component
class CorrectNLL(Loss):
    """-log pi on the actions of correct rollouts, a mean over those: sum_all / sum_correct.

    `reward_term` > 1/2 is correct.
    """

    reward_term: str = "correct"
    needs_whole_batch = True  # how many actions are of correct rollouts

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says which rollouts are correct."""
        return (self.reward_term,)

    @property
    def couples_rows(self) -> bool:
        return True  # their number in the minibatch

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        correct = (batch.reward_terms[self.reward_term] > 0.5)[batch.rollout, None] & batch.mask
        return -pi.logp * correct * (batch.mask.sum() / correct.sum().clamp(min=1)).to(pi.logp)


def vapo(
    group_size: int = 16,
    lambda_length_scale: float = 0.05,
    clip_high: float = 0.28,
    nll_coef: float = 0.1,
) -> Method:
    """PPO by token mean with clip-higher, length-adaptive GAE, and `nll_coef` x NLL of correct answers.

    lambda_policy = 1 - 1 / (`lambda_length_scale` l), lambda_critic = 1; short answers, `lambda_length_scale` l < 1, have 0.
    """
    # Like VC-PPO it first trains the value alone, a phase of its own. A step has 8,192 rollouts, an
    # update 512.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=LengthAdaptiveGAE(alpha=lambda_length_scale),
        loss=Clip(0.2, clip_high) + OutcomeValueLoss() + nll_coef * CorrectNLL(),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )
