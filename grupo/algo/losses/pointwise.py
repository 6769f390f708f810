"""Pointwise preference losses: a function of each rollout's own score, by its label or target.

The losses need no pairs, and also train on single answers with a label. The loss of a group is
placed on all its actions, (N, T), so aggregate with `group_mean`.
"""

from collections.abc import Callable

from torch import Tensor

from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import is_success, uniform_weights
from grupo.algo.losses.preference import Link
from grupo.algo.losses.scores import Score
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative
from grupo.core.requires import Requires


def no_shift(score: PerRollout, batch: Batch) -> Tensor:
    """Shift 0, a number: the scores as they are.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> no_shift(torch.tensor([1.0]), make_batch(group=[0])).item()
    0.0
    """
    return score.new_zeros(())


@component
class BatchMeanShift:
    """(mean score of all chosen + mean score of all rejected) / 2 of the batch, a constant number.

    Source: BCO, Jung et al., arXiv:2404.04656, eq. 14.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], reward=[1.0, 0.0, 1.0])
    >>> BatchMeanShift()(torch.tensor([1.0, -2.0, 3.0]), batch).item()
    0.0
    """

    # the mean is over all groups, and is not differentiated
    requires = Requires(whole_batch=True, surrogate_gradient=True)

    def __call__(self, score: PerRollout, batch: Batch) -> Tensor:
        has_actions = batch.lengths > 0  # rollouts of other minibatches have no rows here
        success = is_success(batch)
        sides = (has_actions & success, has_actions & ~success)
        means = [(score.detach() * side).sum() / side.sum().clamp(min=1) for side in sides]
        return (means[0] + means[1]) / 2


@component
class LabelledScore(Loss):
    """Mean over the group's chosen of chosen_link(s) + mean over its rejected of rejected_link(s).

    s = score - shift, (N, T). A rollout with a positive reward is chosen, any other is rejected.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.
        chosen_link: loss of a chosen rollout by its score.
        rejected_link: loss of a rejected rollout by its score.
        shift: subtracted from all scores, `(score, batch) -> ()`.

    >>> from grupo.algo.losses.links import Logistic, Sigmoid
    >>> from grupo.algo.losses.scores import LogRatio
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> loss = LabelledScore(LogRatio(), Sigmoid(1.0), Sigmoid(-1.0))
    >>> loss(perturb_logp(batch, [[0.0], [0.0]]), batch).tolist()
    [[1.0], [1.0]]
    """

    score: Score
    chosen_link: Link
    rejected_link: Link
    shift: Callable[[Tensor, Batch], Tensor] = no_shift

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        score = self.score(pi, batch)
        s = score - self.shift(score, batch)
        success = is_success(batch)
        chosen = group_ops.mean_where(success, self.chosen_link(s), batch.group)
        rejected = group_ops.mean_where(~success, self.rejected_link(s), batch.group)
        return broadcast_to_tokens(chosen + rejected, batch)


@component
class RegressScore(Loss):
    """(score - target)^2 of each rollout, weighted within its group, (N, T).

    The weights of a group sum to its number of rollouts, so `group_mean` is the mean over rollouts.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.
        target: value of the score at which the loss is 0, `batch -> (R,)`.
        weight: weight of each rollout, `batch -> (R,)`.

    >>> from grupo.algo.losses.contrastive import rollout_log_ratio
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0])
    >>> loss = RegressScore(rollout_log_ratio, WinRateTarget(2.0, "correct"))
    >>> batch = make_batch(group=[0, 0], reward_terms={"correct": [1.0, 0.0]})
    >>> loss(perturb_logp(batch, [[0.25], [0.0]]), batch).tolist()  # targets 1/2 and -1/2
    [[0.0625], [0.25]]
    """

    score: Score
    target: Callable[[Batch], Tensor]
    weight: Callable[[Batch], Tensor] = uniform_weights

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        score = self.score(pi, batch)
        residual = score - self.target(batch).to(score)
        return broadcast_to_tokens(self.weight(batch).to(score) * residual**2, batch)


@component
class ChosenVariance(Loss):
    """Population variance of the scores of the group's rollouts with a positive reward, (N, T).

    Source: GEPO, Wu et al., arXiv:2505.12723.

    Args:
        score: score of each rollout, `(pi, batch) -> (R,)`.

    >>> from grupo.algo.losses.scores import rollout_logp
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0, 0], reward=[1.0, 1.0, 0.0])
    >>> ChosenVariance(rollout_logp)(perturb_logp(batch, [[1.0], [0.0], [7.0]]), batch)[0].item()
    0.25
    """

    score: Score

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s, chosen, g = self.score(pi, batch), is_success(batch), batch.group
        variance = group_ops.mean_where(chosen, (s - group_ops.mean_where(chosen, s, g)) ** 2, g)
        return broadcast_to_tokens(variance, batch)


@component
class WinRateTarget:
    """eta (P - 1/2), P the win rate against all G rollouts of the group, itself included, (R,).

    The reward term is the win rate w against the other G - 1 rollouts; a rollout beats itself with
    probability 1/2, so P - 1/2 = (G - 1) / G (w - 1/2).
    Source: SPPO, Wu et al., arXiv:2405.00675, eq. 4.7.

    Args:
        eta: factor of the target, in nats.
        reward_term: name of the reward term with the win rate.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], reward_terms={"win_rate": [1.0, 0.0]})
    >>> WinRateTarget(2.0)(batch).tolist()
    [0.5, -0.5]
    """

    eta: NonNegative
    reward_term: str = "win_rate"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> PerRollout:
        size = group_ops.count(batch.reward, batch.group)
        return self.eta * (size - 1) / size * (batch.reward_terms[self.reward_term] - 0.5)
