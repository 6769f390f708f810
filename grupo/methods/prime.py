"""PRIME: token rewards implied by an outcome model. Cui et al., 2025, arXiv:2502.01456."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import pad

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.token_table import (
    discounted_sum,
    from_token_table,
    sum_per_rollout,
    to_token_table,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def prime(
    group_size: PositiveInt = 4, process_coef: NonNegative = 1.0, clip_eps: NonNegative = 0.2
) -> Method:
    """A_t = (r - mean of the others) + process_coef times the same of the implicit rewards to come.

    The implicit reward of a token is (log pi_prm - log pi_ref) / m, of a model "prm" trained by
    `implicit_prm`, with m the largest absolute sum of log-ratios from a token of the batch to the
    end of its rollout. Groups of which less than 0.2 or more than 0.8 are correct are
    replaced by others; rewards are 0 or 1. Four updates per step.

    Args:
        group_size: rollouts per task (authors' script: 4).
        process_coef: weight of the implicit rewards (authors' code: 1.0).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),
        sampler=GroupSampler(group_size),
        filter=KeepAccuracyWithin(),
        advantage=chain(Center(group_ops.leave_one_out_mean), AddImplicitRewards(process_coef)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


@component
class AddImplicitRewards:
    """x + coef sum over s >= t of gamma^(s - t) (r_s - mean over the others of their mean r).

    r_t = (log pi_prm - log pi_ref) / m, implied by an outcome model; means are over tokens. m is
    the largest absolute value in the batch of the sum of log-ratios over s >= t.

    Args:
        coef: weight of the sum.
        gamma: discount per token.
        model: name of the outcome model among the auxiliary models.
    """

    coef: NumberOrSchedule
    gamma: Fraction = 1.0
    model: str = "prm"

    @property
    def requires(self) -> Requires:
        # m is that of all groups
        return Requires(signals=(f"logp@{self.model}", "logp@ref"), whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        log_ratio = batch.signals[f"logp@{self.model}"] - batch.signals["logp@ref"]
        to_come = discounted_sum(to_token_table(log_ratio, batch), 1.0)
        # one more row and column, since a batch may be empty
        r = log_ratio / (pad(to_come.abs(), (0, 1, 0, 1)).max() + 1e-6)
        mean = sum_per_rollout(r, batch).to(x) / batch.lengths.clamp(min=1)
        others = broadcast_to_tokens(group_ops.leave_one_out_mean(mean, batch.group), batch)
        returns = discounted_sum(to_token_table(r - others, batch), self.gamma)
        return broadcast_to_tokens(x, batch) + self.coef * from_token_table(returns, batch)


@component
class KeepAccuracyWithin:
    """Filter: keep groups whose fraction of correct rollouts, the mean reward, is in a range.

    Args:
        low: smallest fraction.
        high: largest fraction.

    Raises:
        ConfigError: `low` is above `high`.
    """

    low: Fraction = 0.2
    high: Fraction = 0.8

    requires = Requires(reward_range=(0.0, 1.0))

    def __post_init__(self) -> None:
        if not any(isinstance(end, DynamicNumber) for end in (self.low, self.high)):
            check_field(self, "low", self.low <= self.high, f"at most high, {self.high}")

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if self.low <= self._accuracy(group) <= self.high]

    def _accuracy(self, group: Group) -> float:
        return sum(group.rewards) / len(group.rewards)


PAPER = Paper(
    title="Process Reinforcement through Implicit Rewards",
    use="Outcomes are too sparse, and a model trained on outcomes exists or is cheap to train.",
    tags=("process-reward", "advantage"),
    verl="the recipe prime: adv_estimator='rloo', reward_dpo_coef=reward_gt_coef=5; whitens A",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "PRIME-RL/PRIME: training/examples/run_prime_main.sh, compute_rloo_returns of "
        "verl/trainer/ppo/core_algos.py and batch_norm of verl/workers/actor/dp_prime.py",
    ),
    plan="run_prime_main.sh: 256 prompts of 4 answers, minibatches of 256 answers (this version of"
    " verl counts answers): 4 updates per step.",
    missing=(
        "The outcome model is trained on each step's rollouts there; here it is fixed.",
        "Prompts beyond the batch size are kept there and generated anew; here a round generates"
        " the missing groups only.",
    ),
    deviations=(
        "The mean of a rollout's own implicit rewards is left out of its baseline, as in the paper;"
        " the released code adds (r_t - mean of the rollout's own r) / (K - 1).",
        "Advantages are not whitened, as in the paper's formula; the released code whitens them.",
        "m is the largest sum of the whole batch; each device of the released code has its own.",
        "The mean is over the tokens of a minibatch. The released code averages over the tokens of"
        " a micro-batch, of which the script has 8 answers over 8 devices: one answer each, so that"
        " answers count equally there.",
        "After 10 rounds of generation a step trains on fewer groups; the released code has no"
        " limit.",
    ),
    audit="Constants, filter and update plan compared with the repository at 18ad596; the advantage"
    " agrees with its code up to the deviations. Both terms have weight 1 there: rm_coef=5 is part"
    " of the logged total alone (main_ppo.py). prime_norm is batch_norm by default.",
)
