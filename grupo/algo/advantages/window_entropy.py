"""Windows of entropy: the mean entropy of the tokens after a token, and rewards on their number.

Source: AEPO of ARES, Chen et al., arXiv:2510.08457, as released.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.algo.advantages.token_table import TokenTable, sum_per_rollout, to_token_table
from grupo.algo.divergences import k3
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.controllers import ExponentialMean
from grupo.core.numbers import NonNegative
from grupo.core.requires import Requires
from grupo.core.units import Tokens

DIFFICULTIES = ("easy", "medium", "hard")
LARGEST_METRIC = "entropy_windows/percentile_95"
SMALLEST_ACCURACY = (2 / 3, 1 / 3)  # of an easy and of a medium group
MARGIN = (0.15, 0.25, 0.35)  # tolerance around the target, as a fraction of it, by difficulty
KNEE = (2.0, 3.0, 4.0)  # where the penalty becomes linear
SOFTNESS = (2.0, 2.5, 3.0)  # of the sigmoid
CAP = (1.0, 1.0, 1.2)  # largest reward in units of alpha
INCORRECT = (0.6, 0.8, 1.0)  # factor on the reward of incorrect rollouts


def difficulty(batch: Batch) -> Int[Tensor, "R"]:
    """0, 1 or 2 for rollouts of easy, medium and hard groups: accuracy from 2/3, from 1/3, below.

    A rollout is correct if its reward is above 0.5.

    >>> from grupo.testing.batches import make_batch
    >>> difficulty(make_batch([0, 0, 1, 1], [1.0, 0.0, 0.0, 0.0])).tolist()
    [1, 1, 2, 2]
    """
    accuracy = group_ops.mean((batch.reward > 0.5).to(batch.reward), batch.group)
    easy = torch.zeros_like(accuracy, dtype=torch.long)
    return sum(((accuracy < bound - 1e-9).long() for bound in SMALLEST_ACCURACY), easy)


def window_entropy(batch: Batch, window: Tokens) -> TokenTable:
    """Mean entropy of the `window` tokens after each token, (R, L), NaN where there are fewer.

    Args:
        batch: with the entropy of each token.
        window: length of a window in tokens.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch([0], length=[4], signals={"entropy": [[9.0, 1.0, 3.0, 5.0]]})
    >>> window_entropy(batch, 2).tolist()
    [[2.0, 4.0, nan, nan]]
    """
    entropy = to_token_table(batch.signals["entropy"], batch)
    padded = torch.nn.functional.pad(entropy, (0, window + 1))[:, 1:]
    after = padded.unfold(1, window, 1).mean(-1)[:, : entropy.shape[1]]
    position = torch.arange(entropy.shape[1], device=entropy.device)
    return after.masked_fill(position + window >= batch.lengths[:, None], torch.nan)


def _huber(x: Tensor, knee: Tensor) -> Tensor:
    """x^2 / (2 knee) up to the knee, x - knee / 2 beyond it, for x of 0 or more."""
    return torch.where(x <= knee, x**2 / (2 * knee), x - knee / 2)


def _by_difficulty(values: tuple[float, ...], label: Tensor, like: Tensor) -> Tensor:
    return like.new_tensor(values)[label]


@component
class UncertainTriggerReward:
    """x + e(N - T): a reward on N, the number of uncertain triggers of a rollout, (R,).

    A trigger is a token of `trigger_tokens`, such as "wait", and uncertain if the mean entropy of
    the `window` tokens after it reaches `threshold`. T is the rounded mean of N over the groups of
    equal `difficulty` in the batch. With D = N - T, the margin g = max(1, f T), the cap
    C = alpha x (1, 1, 1.2), h(y) = C huber(max(y, 0)) / (g + k) and s = sigmoid:

        correct     easy    -min(C, h(D - g))
                    medium  -min(C, h(|D| - g))
                    hard    C s((D + g) / t) if D >= -g, else -min(C, h(-D - g) / 2)
        incorrect   C (0.6, 0.8, 1) s(max(D - g, 0) / t)

    f = (0.15, 0.25, 0.35), k = (2, 3, 4) and t = (2, 2.5, 3) for easy, medium and hard groups.

    Metrics: `entropy_windows/percentile_95`, the median over rollouts of the 95th percentile of
    the windows, and for each difficulty `triggers/<difficulty>`, the mean of N; NaN where there
    is no such rollout.

    Args:
        trigger_tokens: ids of the tokens that are triggers; () for every token.
        window: length of a window in tokens.
        threshold: mean entropy of a window from which its trigger counts, in nats.
        alpha_easy: size of the reward of easy groups.
        alpha_medium: the same for medium groups.
        alpha_hard: the same for hard groups.

    >>> from grupo.testing.batches import make_batch
    >>> entropy = {"entropy": [[1.0, 1.0], [0.0, 0.0]]}
    >>> batch = make_batch([0, 0], [1.0, 1.0], length=[2, 2], signals=entropy)
    >>> UncertainTriggerReward(window=1, threshold=0.5).count(batch).tolist()
    [1.0, 0.0]
    """

    trigger_tokens: tuple[int, ...] = ()
    window: Tokens = 4
    threshold: NonNegative = ExponentialMean(LARGEST_METRIC, decay=0.99, start=0.0)
    alpha_easy: NonNegative = 0.5
    alpha_medium: NonNegative = 0.5
    alpha_hard: NonNegative = 0.5

    @property
    def requires(self) -> Requires:
        items = ("step/item",) if self.trigger_tokens else ()
        return Requires(signals=("entropy", *items), whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        label = difficulty(batch)
        count = self.count(batch)
        # the first rounding hides the order of summation from the second, which has ties
        target = bucket_means(count, batch).round(decimals=9).round()[label]
        return x + self.shaped(count, target, label, batch.reward > 0.5).to(x)

    def count(self, batch: Batch) -> PerRollout:
        """N of each rollout."""
        is_uncertain = window_entropy(batch, self.window) >= self.threshold
        if self.trigger_tokens:
            items = to_token_table(batch.signals["step/item"], batch)
            is_uncertain &= torch.isin(items, items.new_tensor(self.trigger_tokens))
        return is_uncertain.sum(1).to(batch.reward)

    def shaped(
        self, count: PerRollout, target: PerRollout, label: Int[Tensor, "R"], correct: Tensor
    ) -> Float[Tensor, "R"]:
        """e of each rollout, from N, T, its difficulty and whether it is correct."""
        margin = (_by_difficulty(MARGIN, label, count) * target.clamp(min=1)).clamp(min=1)
        knee, softness = (_by_difficulty(x, label, count) for x in (KNEE, SOFTNESS))
        alpha = (self.alpha_easy, self.alpha_medium, self.alpha_hard)
        cap = _by_difficulty(alpha, label, count) * _by_difficulty(CAP, label, count)
        distance = count - target

        def penalty(excess: Tensor) -> Tensor:
            return cap * _huber(excess.clamp(min=0), knee) / (margin + knee)

        easy = -torch.minimum(cap, penalty(distance - margin))
        medium = -torch.minimum(cap, penalty(distance.abs() - margin))
        bonus = cap * torch.sigmoid((distance + margin) / softness)
        hard = -torch.minimum(cap, penalty(-distance - margin) / 2)
        hard = torch.where(distance >= -margin, bonus, hard)
        factor = _by_difficulty(INCORRECT, label, count)
        over = (distance - margin).clamp(min=0)
        incorrect = cap * factor * torch.sigmoid(over / softness)
        by_label = torch.stack((easy, medium, hard)).gather(0, label[None])[0]
        return torch.where(correct, by_label, incorrect)

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """The percentile of the windows, and the mean count of each difficulty."""
        percentile = window_entropy(batch, self.window).nanquantile(0.95, dim=1).nanquantile(0.5)
        counts = by_name("triggers", bucket_means(self.count(batch), batch))
        return {LARGEST_METRIC: float(percentile), **counts}


@component
class KLOfDifficulties:
    """x, while the KL from the reference of each difficulty is logged.

    Metrics: for each `difficulty`, `kl_ref/<difficulty>`, the mean over rollouts of k3 from the
    reference at the step's beginning, in nats; NaN without such a rollout.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch([0], [1.0])
    >>> KLOfDifficulties().metrics(batch)["kl_ref/easy"]
    0.0
    """

    requires = Requires(signals=("logp@ref",), whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """The mean KL of each difficulty."""
        kl = sum_per_rollout(k3(batch.old_logp, batch.signals["logp@ref"]), batch)
        kl = kl.to(batch.reward) / batch.lengths.clamp(min=1)
        return by_name("kl_ref", bucket_means(kl, batch))


def bucket_means(x: PerRollout, batch: Batch) -> Float[Tensor, "3"]:
    """Mean over the groups of each difficulty of the group's mean; NaN without groups."""
    weight = 1 / group_ops.count(x, batch.group)
    one_hot = torch.nn.functional.one_hot(difficulty(batch), 3).to(x)
    return (weight * x) @ one_hot / (weight @ one_hot)


def by_name(name: str, means: Float[Tensor, "3"]) -> Mapping[str, float]:
    """Metrics `<name>/<difficulty>` of the means of each difficulty."""
    return {
        f"{name}/{bucket}": mean for bucket, mean in zip(DIFFICULTIES, means.tolist(), strict=True)
    }
