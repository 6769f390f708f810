"""Supervised losses on demonstrations, alone or mixed with a policy loss.

An action that the policy did not generate has `sampled` = 0, see `grupo.algo.data_source`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.data_source import REQUIRES_SAMPLED, sampled_mask
from grupo.algo.losses.base import Loss
from grupo.algo.token_level import SEQUENCES, row_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NumberOrSchedule
from grupo.core.requires import Requires


@component
class NLL(Loss):
    """-log pi, (N, T): supervised fine-tuning on all actions, whatever their advantage.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], logp=-2.0)
    >>> NLL()(perturb_logp(batch, [[0.5]]), batch).tolist()
    [[1.5]]
    """

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -pi.logp


@component
class MixSFT(Loss):
    """(1 - sft_weight) policy_loss on generated actions, sft_weight demo_loss on others, (N, T).

    Args:
        sft_weight: weight of the demonstrations, in [0, 1].
        policy_loss: loss of actions that the policy generated.
        demo_loss: loss of the other actions.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampled = {"sampled": [[1.0], [0.0]]}
    >>> batch = make_batch(group=[0, 0], advantage=[3.0, 0.0], signals=sampled)
    >>> pi = perturb_logp(batch, [[0.0], [0.0]])
    >>> MixSFT(0.25, Reinforce(), NLL())(pi, batch).tolist()
    [[2.25], [0.25]]
    """

    sft_weight: Fraction
    policy_loss: Loss
    demo_loss: Loss

    requires = REQUIRES_SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        policy = (1 - self.sft_weight) * self.policy_loss(pi, batch)
        demo = self.sft_weight * self.demo_loss(pi, batch)
        return torch.where(sampled_mask(batch), policy, demo)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {
            **self.policy_loss.metrics(pi, batch),
            **self.demo_loss.metrics(pi, batch),
            "sft_weight": torch.full_like(pi.logp, self.sft_weight),
        }


@component
class SelectBySource(Loss):
    """policy_loss on actions that the policy generated, demo_loss on the others, (N, T).

    Args:
        policy_loss: loss of actions that the policy generated.
        demo_loss: loss of the other actions.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampled = {"sampled": [[1.0], [0.0]]}
    >>> batch = make_batch(group=[0, 0], advantage=[3.0, 0.0], signals=sampled)
    >>> pi = perturb_logp(batch, [[0.0], [0.0]])
    >>> SelectBySource(Reinforce(), NLL())(pi, batch).tolist()
    [[3.0], [1.0]]
    """

    policy_loss: Loss
    demo_loss: Loss

    requires = REQUIRES_SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        policy = self.policy_loss(pi, batch)
        return torch.where(sampled_mask(batch), policy, self.demo_loss(pi, batch))

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.policy_loss.metrics(pi, batch), **self.demo_loss.metrics(pi, batch)}


@component
class EntropyWeightedMix(Loss):
    """Policy and demonstration losses weighted by the row's mean entropy H, a constant, (N, T).

    Generated actions: -rl_coef e^H A log pi where A > 0, else -A log pi.
    Other actions: -sft_coef e^-H log pi - A pi.
    Source: SRFT, arXiv:2506.19767.

    Args:
        sft_coef: coefficient of the likelihood of demonstrations.
        rl_coef: coefficient of generated actions with a positive advantage.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> sampled = {"sampled": [[1.0], [0.0]]}
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, 0.0], signals=sampled)
    >>> pi = perturb_logp(batch, [[0.0], [0.0]])
    >>> pi["entropy"] = torch.zeros(2, 1)
    >>> EntropyWeightedMix(sft_coef=0.5, rl_coef=0.25)(pi, batch).tolist()
    [[0.25], [0.5]]
    """

    sft_coef: NumberOrSchedule
    rl_coef: NumberOrSchedule

    requires = (
        REQUIRES_SAMPLED
        | SEQUENCES
        | Requires(recomputed_signals=("entropy",), surrogate_gradient=True)
    )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        H = row_mean(pi.entropy.detach(), batch)
        A = batch.advantage
        policy = -torch.where(A > 0, self.rl_coef * H.exp(), 1.0) * A * pi.logp
        demo = -self.sft_coef * (-H).exp() * pi.logp - A * pi.logp.exp()
        return torch.where(sampled_mask(batch), policy, demo)


@component
class PolicyShaping(Loss):
    """-A f(pi) with f(p) = p / (p + shaping_constant), in place of a clipped ratio.

    The gradient of f is greatest where p = shaping_constant: unlikely tokens of an expert are
    learned. The expert's own probability is taken as 1, so the ratio is pi itself.

    Source: LUFFY (arXiv:2504.14945), policy shaping.

    Args:
        shaping_constant: the constant in f; 0.1 in the paper.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], advantage=[1.0], logp=0.0)
    >>> PolicyShaping(1.0)(perturb_logp(batch, [[0.0]]), batch).tolist()
    [[-0.5]]
    """

    shaping_constant: NumberOrSchedule = 0.1

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        p = pi.logp.exp()
        return -batch.advantage * p / (p + self.shaping_constant)
