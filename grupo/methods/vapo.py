"""VAPO: GAE whose lambda grows with the answer's length. Yue et al., 2025, arXiv:2504.05118."""

from grupo.algo.advantages.gae import VALUE_HEAD, LengthAdaptiveGAE
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.algo.minibatches import Updates
from grupo.core.aux_heads import FeatureHead
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def vapo(
    group_size: PositiveInt = 16,
    lambda_length_scale: Positive = 0.05,
    clip_high: NonNegative = 0.28,
    nll_coef: NonNegative = 0.1,
    value_head: FeatureHead = VALUE_HEAD,
) -> Method:
    """PPO by token mean with clip-higher, length-adaptive GAE, and NLL of correct answers.

    lambda_policy = 1 - 1 / (lambda_length_scale l) for an answer of l tokens, 0 where
    lambda_length_scale l < 1; lambda_critic = 1.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (paper: 16).
        lambda_length_scale: alpha in the paper (paper: 0.05).
        clip_high: ratios are clipped above at 1 + clip_high (paper: 0.28).
        nll_coef: weight of the NLL of correct answers (paper: 0.1).
        value_head: linear on detached features, on shared ones, or on a model of its own.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=LengthAdaptiveGAE(alpha=lambda_length_scale, value_head=value_head),
        loss=Clip(0.2, clip_high) + OutcomeValueLoss() + nll_coef * CorrectNLL(),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


@component
class CorrectNLL(Loss):
    """-log pi on the tokens of correct rollouts, scaled to a mean over those tokens.

    Args:
        reward_term: reward term that is above 1/2 for a correct rollout.
    """

    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        # counts the tokens of correct rollouts in the minibatch
        return Requires(whole_batch=True, reward_terms=(self.reward_term,), coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        correct = (batch.reward_terms[self.reward_term] > 0.5)[batch.rollout, None] & batch.mask
        scale = batch.mask.sum().to(pi.logp) / correct.sum().clamp(min=1)
        return -pi.logp * correct * scale


PAPER = Paper(
    title="VAPO: Efficient and Reliable Reinforcement Learning for Advanced Reasoning Tasks",
    use="Answers have very different lengths, and a value function is worth its cost.",
    tags=("critic", "length", "aggregation", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source(
        "paper",
        "eq. 5 and 7 to 10 and section 5.1 of arXiv:2504.05118v3",
    ),
    plan=(
        "section 5.1: 512 prompts of 16 rollouts and a minibatch of 512, read as rollouts: 16 "
        "updates per step"
    ),
    missing=(
        "The 50 steps before, in which the value alone is trained on rollouts of a fixed policy.",
    ),
    deviations=(
        "By default the critic is linear on detached features, not a model of its own (value_head) "
        "that starts from a reward model.",
        "lambda_policy is 0 where eq. 5 is negative.",
    ),
    audit=(
        "formulas and constants compared with the paper (copies of its text in public repositories)"
    ),
    shown=("docs/claims.md#tokens",),
)
