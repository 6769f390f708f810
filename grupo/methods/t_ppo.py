"""T-PPO: PPO on truncated, unfinished answers. Fan et al., 2025, arXiv:2506.15050."""

from torch import Tensor

from grupo.algo.advantages.gae import VALUE_HEAD, ExtendedGAE
from grupo.algo.data_source import REQUIRES_OFF_CONTEXT, off_context_mask
from grupo.algo.losses import Clip, Loss
from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.algo.losses.masking import WhereLoss
from grupo.core.aux_heads import FeatureHead
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.units import Tokens
from grupo.method import Method
from grupo.rollouts.curricula import ShuffledTasks, UnfinishedFirst
from grupo.rollouts.samplers import WindowSampler


def t_ppo(
    group_size: PositiveInt = 8,
    gae_lambda: Fraction = 0.95,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    window: Tokens = 8192,
    max_length: PositiveInt = 24576,
    value_head: FeatureHead = VALUE_HEAD,
) -> Method:
    """The policy is trained on all answers by EGAE, the value function on finished ones by the
    outcome.

    An answer gets at most `window` tokens a step; if it is cut there, the next step continues it.
    With gamma = 1 the last TD error of a cut answer is 0. The policy loss is the mean over the
    tokens of this step's windows, so that each token is trained on once; the value loss runs over
    all tokens of a finished answer.

    Args:
        group_size: rollouts per task (our choice).
        gae_lambda: lambda of GAE (our choice).
        clip_low: ratios are clipped below at 1 - clip_low (our choice).
        clip_high: ratios are clipped above at 1 + clip_high (our choice).
        window: tokens of an answer per step, at most max_length (our choice).
        max_length: tokens of an answer in all steps together (our choice).
        value_head: linear on detached features, on shared ones, or on a model of its own.
    """
    policy_loss = WhereLoss(Clip(clip_low, clip_high), GeneratedInThisStep())
    return Method(
        curriculum=UnfinishedFirst(ShuffledTasks()),
        sampler=WindowSampler(group_size, window, max_length),
        advantage=ExtendedGAE(gae_lambda=gae_lambda, value_head=value_head),
        loss=policy_loss + FinishedValueLoss(),
        aggregation=WindowTokenMean(),
    )


@component
class GeneratedInThisStep:
    """Mask of the actions that were generated in this step's window, (N, T)."""

    requires = REQUIRES_OFF_CONTEXT

    def __call__(self, batch: Batch) -> Tensor:
        return ~off_context_mask(batch)


@component
class WindowTokenMean:
    """Weight 1 / W, W the number of tokens that were generated in this step, (N, T)."""

    requires = REQUIRES_OFF_CONTEXT

    def __call__(self, batch: Batch) -> PerAction:
        count = (batch.mask & ~off_context_mask(batch)).sum().clamp(min=1)
        return batch.mask.to(batch.old_logp) / count


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


PAPER = Paper(
    title="Truncated Proximal Policy Optimization",
    use="Waiting for the longest answer costs more than training on the rest.",
    tags=("critic", "length"),
    checked=("golden", "properties", "run"),
    catalogue=("t-ppo",),
    source=Source(
        "third_party",
        "the rule V(s_l) = V(s_(l-1)) from reviews and a third party's note; the rest from the"
        " abstract and from memory",
    ),
    plan="Not stated in any source that was opened; one update per step.",
    missing=(
        "Minibatches of its own for the value model.",
        "Any treatment of the tokens just before a cut beyond EGAE.",
    ),
    deviations=(
        "By default the critic is linear on detached features, not a model of its own: value_head.",
        "New tasks take the place of finished groups, not of single finished answers: a step has a"
        " constant number of tasks, and fewer answers where some of a group are continued.",
        "The window, the limit of an answer, lambda and the clip are our choice: no source that was"
        " opened states them.",
        "The value loss is divided by the tokens of the step's windows, like the policy loss.",
    ),
    audit="EGAE and the token filtering compared with four reviews of the paper and the"
    " catalogue's row; neither paper nor code could be opened.",
)
