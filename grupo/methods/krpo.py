"""KRPO: a Kalman filter estimates baseline and scale. Wang et al., 2025, arXiv:2505.07527."""

from math import sqrt

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def krpo(
    group_size: PositiveInt = 12, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.01
) -> Method:
    """A_i = (r_i - m_i) / sqrt(P_i), estimates of a one-dimensional Kalman filter for the prompt.

    loss = mean over answers of mean over tokens of -min(R A, clip(R, 1 -+ clip_eps) A) + kl_coef
    k3.

    A step has 24 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' code: 12).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.2).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.01).
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=KalmanAdvantage(),
        loss=loss,
        updates=Updates(minibatches=24),
    )


@component
class KalmanAdvantage:
    """(r_i - m_i) / (sqrt(P_i) + eps), the filter's mean and variance after the i-th reward.

    P' = P + process_noise, K = P' / (P' + observation_noise), m += K (r - m), P = (1 - K) P'.

    Args:
        process_noise: variance added before each reward.
        observation_noise: variance of a reward.
        initial_mean: m before the first reward.
        initial_variance: P before the first reward.
        eps: added to the denominator.
    """

    process_noise: NumberOrSchedule = 1e-5
    observation_noise: NumberOrSchedule = 1e-2
    initial_mean: NumberOrSchedule = 0.0
    initial_variance: NumberOrSchedule = 1.0
    eps: NumberOrSchedule = 1e-8

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        A = torch.zeros_like(x)
        label = batch.group.tolist()
        estimate = dict.fromkeys(label, (self.initial_mean, self.initial_variance))
        for i in _pseudo_random_order(batch).tolist():
            m, P = estimate[label[i]]
            K = (P + self.process_noise) / (P + self.process_noise + self.observation_noise)
            m = m + K * (float(x[i]) - m)
            P = (1 - K) * (P + self.process_noise)
            estimate[label[i]] = m, P
            A[i] = (x[i] - m) / (sqrt(P) + self.eps)
        return A


def _pseudo_random_order(batch: Batch) -> Tensor:
    """Rollouts ordered by late digits of their log-probability, independent of the rewards."""
    return (sum_per_rollout(batch.old_logp, batch) * 1e6).frac().argsort(stable=True)


PAPER = Paper(
    title="Kalman Filter Enhanced GRPO for Reinforcement Learning-Based Language Model Reasoning",
    use="Rewards are noisy measurements of how well a prompt can be answered.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
    source=Source("code", "billhhh/KRPO_LLMs_RL: train.py, loss.py"),
    plan="train.py: 32 prompts with 12 rollouts per step in minibatches of 16 rollouts, 24 updates",
    missing=(
        "The reward of the code: 1 for the reference answer, 0.5 for an answer that contains it, "
        "0.01 for another, 0 without one.",
        "The top-k of 50 that the code's transformers has by default.",
    ),
    deviations=(
        (
            "The order of the filter is pseudo-random: the code filters in the order of "
            "sampling, which means nothing here."
        ),
        "A minibatch holds whole groups: the code's 16 rollouts are drawn from all groups.",
        "The end token is trained: the code masks it, since it is also the padding token, and "
        "hides it from attention in the prompt, too.",
    ),
    audit=(
        "filter, its variances, loss, aggregation, constants and plan compared with "
        "train.py and loss.py"
    ),
    shown=("docs/claims.md#noisy",),
)
