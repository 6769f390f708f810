"""Guide-GRPO: hints where all fail, trained without them. Nath et al., 2025, arXiv:2506.13923."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.data_source import off_context_mask
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, with_hint


def guide_grpo(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    hint_column: str = "hint",
    quantile: Fraction = 0.9,
) -> Method:
    """GRPO with hinted rollouts in place of the plain ones for failed tasks, trained without hint.

    Where all group_size plain rollouts to a question x are wrong, as many are sampled with the hint
    g in the prompt and form the group. A = (r - mean(r)) / std(r); groups of equal rewards are
    dropped. loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A), or -A R / (R + q) for hinted rollouts,
    with R = pi(o_t | x, o_<t) / old(o_t | x, g, o_<t) and q a quantile of the answer's R.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' script: 0.2).
        hint_column: column of the task that holds the hint.
        quantile: fraction of an answer's tokens with R below q (authors' script: 0.9).
    """
    # To reject hints that give the answer away:
    # .replace(sampler=with_hint(GroupSampler(8), reject_leaks=True)).
    return Method(
        sampler=with_hint(GroupSampler(group_size), hint_column),
        filter=hinted_rollouts_alone,
        loss=ShapeHintedRatio(Clip(clip_eps, clip_eps), quantile),
        updates=Updates(minibatches=2),
    )


def hinted_rollouts_alone(groups: Sequence[Group]) -> Sequence[Group]:
    """Drop the plain rollouts of groups with hinted ones, then groups of equal rewards."""
    hinted = [tuple(r for r in group.rollouts if r.source == "with_hint") for group in groups]
    return keep_nonzero_std(
        [replace(g, rollouts=h or g.rollouts) for g, h in zip(groups, hinted, strict=True)]
    )


@component
class ShapeHintedRatio(Loss):
    """`loss`, but -A r / (r + q) for actions generated with a hint, q a quantile of the answer's r.

    r = pi(o_t | question) / old(o_t | question, hint).

    Args:
        loss: loss of actions generated without a hint.
        quantile: fraction of the answer's tokens with a ratio below q.
    """

    loss: Loss
    quantile: Fraction

    requires = Requires(signals=("off_context",), surrogate_gradient=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch)
        q = self.row_quantile(r.detach(), batch)
        shaped = -batch.advantage * r / (r + q)
        return torch.where(off_context_mask(batch), shaped, self.loss(pi, batch))

    def row_quantile(self, r: Tensor, batch: Batch) -> Tensor:
        """The quantile of each row's ratios, at least 1e-4, (N, 1); 1 for rows without actions."""
        counted = batch.mask | ~batch.mask.any(1, keepdim=True)  # masked ratios are 1
        unmasked = r.masked_fill(~counted, torch.nan)
        # one more row and column, since a batch may be empty
        padded = torch.nn.functional.pad(unmasked, (0, 1, 0, 1), value=torch.nan)
        quantile = padded.nanquantile(self.quantile, dim=1, keepdim=True)[:-1]
        return quantile.clamp(min=1e-4)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)


PAPER = Paper(
    title="Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
    use="Many tasks are never solved, and a hint can be written for each.",
    tags=("hints", "off-policy", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("guide-grpo",),
    source=Source(
        "code",
        "vaskar-open-source-research/guide_rl: verl/trainer/ppo/ray_trainer.py, "
        "compute_policy_loss in core_algos.py, guide_grpo_qwen.sh",
    ),
    plan="guide_grpo_qwen.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "Refilling until 128 groups have rewards that differ.",
        "A solution as a second hint where the hint fails (reroll_with_cot, off in the script).",
        "The other shapes of the hinted ratio: a constant, a power.",
        "The check of the format: an answer without it counts as wrong (do_verify_format).",
    ),
    deviations=(
        "The quantile is over the tokens of an answer: the script's micro-batch of one answer "
        "includes the padding.",
        "All failed tasks of a step are sampled again; in the release their number is rounded down "
        "to a multiple of its devices, so that a few get no hint.",
    ),
    audit=(
        "groups, filter, ratio across prompts, its shape, clip, constants and plan compared with "
        "the trainer, compute_policy_loss and the run script; the mean is over answers, since each "
        "is a micro-batch of its own (ppo_micro_batch_size_per_gpu=1, masked_mean)"
    ),
    shown=("tests/methods/test_toys.py::test_hinted_training_solves_locks_unsolved_by_grpo",),
)
