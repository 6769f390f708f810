"""HiLL: trains a hinter together with the policy. Xia et al., 2026, arXiv:2604.00698."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import PerClassMean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, with_self_hints


def hill(
    group_size: PositiveInt = 8, num_hints: PositiveInt = 4, transfer_temperature: Positive = 0.3
) -> Method:
    """R = (1 - p^n - (1 - p)^n) exp(min(D, 0) / T), p of n attempts with the hint correct.

    The reliance D is the mean over correct attempts of log pi(o | q) - log pi(o | q, hint), per
    token. A rejected hint has R = -0.2.

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' code: 8).
        num_hints: hints per failed task (authors' code: 4).
        transfer_temperature: T, in nats per token (authors' code: 0.3).
    """
    return Method(
        sampler=with_self_hints(GroupSampler(group_size), num_hints),
        advantage=HintRoleAdvantage(transfer_temperature),
        loss=Clip(0.2, 0.28),
        aggregation=PerClassMean("is_hint"),
        updates=Updates(minibatches=2),
    )


@component
class HintRoleAdvantage:
    """z-scores of hints by their value R, and of attempts that used the best hint or none.

    Args:
        transfer_temperature: scale of the penalty on hints the policy depends on, in nats per
            token.
    """

    transfer_temperature: Positive

    requires = Requires(
        signals=("logp@unhinted",), reward_terms=("is_hint", "hint_index", "hint_rejected")
    )

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R = self.hint_value(batch)
        hint = batch.reward_terms["hint_index"]
        is_hint = batch.reward_terms["is_hint"] > 0.5
        label = combine_labels(batch.group, is_hint, hint.masked_fill(is_hint, 0.0))
        best = (R > 0) & (group_ops.max(R, batch.group) == R)
        is_first = hint == group_ops.min(hint.masked_fill(~best, torch.inf), batch.group)
        r = torch.where(is_hint, R, x)
        A = (r - group_ops.mean(r, label)) / (group_ops.std(r, label) + 1e-6)
        return A * (is_hint | (hint == 0) | (best & is_first))

    def hint_value(self, batch: Batch) -> PerRollout:
        """R of the hint that a rollout is, or has used."""
        is_hint = batch.reward_terms["is_hint"] > 0.5
        label = combine_labels(batch.group, batch.reward_terms["hint_index"])
        used_hint = ~is_hint & (batch.reward_terms["hint_index"] > 0)
        correct = (batch.reward > 0.5).to(batch.reward)
        log_ratio = sum_per_rollout(batch.signals["logp@unhinted"] - batch.old_logp, batch)
        d = (log_ratio / batch.lengths.clamp(min=1)).to(correct)
        D = group_ops.mean_where(used_hint & (correct > 0), d, label).clamp(max=0.0)
        n = group_ops.sum(used_hint.to(correct), label)
        p = group_ops.mean_where(used_hint, correct, label)
        R = (1 - p**n - (1 - p) ** n).clamp(min=0.0) * (D / self.transfer_temperature).exp()
        return torch.where(is_hint & (batch.reward_terms["hint_rejected"] > 0.5), -0.2, R)


PAPER = Paper(
    title="Learning to Hint for Reinforcement Learning",
    use="Many tasks are never solved; each has a reference solution but no hint.",
    tags=("hints", "self-play"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("hill",),
    source=Source(
        "code",
        "Andree-9/HiLL: verl/trainer/ppo/hinter_utils.py and hill_ray_trainer.py, "
        "scripts/run_hill.sh",
    ),
    plan=(
        "scripts/run_hill.sh: 128 prompts per step in minibatches of 64, 2 updates (the "
        "hinter: minibatches of 64 hint prompts, one epoch)"
    ),
    missing=(
        (
            "The gates of a hint (parses, fits the prompt, does not hold the answer) are left "
            'to the sampler and the task, as "hint_rejected".'
        ),
        "The other rewards of the hinter: p (1 - p), and both without the reliance.",
        "The dual clip of 3 of the release.",
    ),
    deviations=(
        "A hint is rejected if it holds the answer as a separate word. The release rejects an"
        " answer of one or two characters only behind words such as 'is', and a longer one also"
        " inside a word and with other capital letters.",
        "The paper's two models are a `MultiPolicy` here, clipped to one gradient norm.",
        "The hinter makes an update on each of the two minibatches. In the release it has"
        " minibatches of 64 failed tasks, mostly one update per step, and the loss of a smaller one"
        " is divided by the rows of a full one.",
        "The prompt of the hinter is ours.",
        "The means leave out tokens without advantage. The release's is over all tokens of a "
        "micro-batch: its filter of groups without signal is commented out (hill_ray_trainer.py).",
    ),
    audit=(
        "the hint's reward, the penalty for gates and the choice of the best hint compared with "
        "hinter_utils.py, constants, clips, groups and plan with run_hill.sh"
    ),
)
