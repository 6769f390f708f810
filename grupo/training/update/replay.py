"""Replay of a step: stored rollouts join its batch, and rollouts of the step enter the buffer.

A stored rollout is a rollout of an earlier step in the replay buffer. A replayed rollout is a
stored rollout that joins the batch of this step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from grupo.algo.filters import mark_replayed
from grupo.algo.replay_rules import (
    ReplayPlan,
    ReplayRequest,
    ReplayRule,
    advantage_magnitude,
    no_replay,
)
from grupo.core.batch import Batch
from grupo.core.types import Group, Rollout, Task
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0
from grupo.distributed.phase import Phase
from grupo.rollouts.history import NO_INDEX
from grupo.rollouts.replay_buffer import ReplayBuffer, StoredRollout, ValuesPerAction
from grupo.storage.fault_injection import kill_point
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.update.collate import response_spans
from grupo.util.rng import make_rng

Collate = Callable[[CollectedGroups], Batch]
AddSignals = Callable[[Batch], Batch]


@dataclass(frozen=True)
class ReplayedStep:
    """A step after its replay.

    Args:
        collected: The groups of the step. Rollouts that the rule leaves out of training are removed
            from the kept groups. Each replayed rollout is appended as a kept group of its own.
        batch: The batch of the kept groups, with advantages.
        metrics: The metrics of the replay, by name.
    """

    collected: CollectedGroups
    batch: Batch
    metrics: dict[str, float]


@dataclass(frozen=True)
class Replayer:
    """Replays rollouts of a replay buffer.

    Args:
        replay_buffer: The replay buffer.
        collate: Collates the kept groups into a batch, which has no measured signals yet.
        add_method_signals: Adds the signals that the method reads to a batch.
        ranks: The processes that train together. Rank 0 writes and reads the stored rollouts.
    """

    replay_buffer: ReplayBuffer
    collate: Collate
    add_method_signals: AddSignals
    ranks: Ranks

    def __call__(
        self, rule: ReplayRule, collected: CollectedGroups, batch: Batch, step: int, seed: int
    ) -> ReplayedStep:
        """Add stored rollouts to the batch, and rollouts of the step to the buffer.

        A step without kept groups replays nothing.

        Args:
            rule: Chooses the rollouts.
            collected: The groups of the step.
            batch: The batch of the kept groups, with advantages.
            step: Index of the step, from 0.
            seed: Seed of the run.
        """
        rng = make_rng(seed, "replay", step)
        choose = rule if collected.kept_groups else no_replay
        plan = choose(ReplayRequest(batch, self.replay_buffer.priorities_and_steps, step, rng))
        replayed = self._read_stored(plan.drawn)
        ages = [float(step - self.replay_buffer.step[i]) for i in plan.drawn]
        kill_point("replay_buffer/drawn")
        self._store_admitted(collected.kept_groups, batch, plan, step)
        if replayed or not plan.trained.all():
            collected, batch = self._join(collected, batch, plan, replayed)
        metrics = {
            "replay/buffer_size": float(len(self.replay_buffer)),
            "replay/drawn": float(len(replayed)),
        }
        metrics |= {"replay/age_mean": sum(ages) / len(ages)} if ages else {}
        return ReplayedStep(collected, batch, metrics)

    def _read_stored(self, positions: Sequence[int]) -> list[StoredRollout]:
        """The stored rollouts at these positions; rank 0 reads them and broadcasts them."""
        if self.ranks.size == 1 or not positions:
            return [self.replay_buffer.read(i) for i in positions]
        is_rank_0 = self.ranks.rank == 0
        data = [self.replay_buffer.read(i).to_data() for i in positions] if is_rank_0 else None
        shared = broadcast_from_rank_0(self.ranks, data, Phase.REPLAYED_ROLLOUTS_READ)
        return [StoredRollout.from_data(entry) for entry in shared]

    def _store_admitted(
        self, groups: Sequence[Group], batch: Batch, plan: ReplayPlan, step: int
    ) -> None:
        stored = stored_rollouts(groups, batch, plan.admitted)
        priority = advantage_magnitude(batch)[plan.admitted]
        self.replay_buffer.append(
            step, self.replay_buffer.to_lines(stored), priority, is_writer=self.ranks.rank == 0
        )

    def _join(
        self,
        collected: CollectedGroups,
        batch: Batch,
        plan: ReplayPlan,
        replayed: Sequence[StoredRollout],
    ) -> tuple[CollectedGroups, Batch]:
        """The groups of the step with the replayed rollouts, and the batch of the kept groups."""
        stays_in_batch = plan.trained
        groups = (*_remaining(collected.kept_groups, stays_in_batch), *map(_group_of, replayed))
        collected = replace(collected, kept_groups=groups)
        if not groups:
            return collected, batch.select_rows(torch.tensor([], dtype=torch.long))
        rollout_of_row = batch.rollout
        own_batch = batch.select_rows(stays_in_batch[rollout_of_row].nonzero()[:, 0])
        joined = _with_own_values(self.collate(collected), own_batch)
        replayed_rows = range(len(own_batch.rollout), len(joined.rollout))
        joined = _with_stored_values(joined, replayed_rows, replayed)
        rows = torch.tensor([*replayed_rows]).long()
        return collected, self._with_signals(joined, own_batch, rows)

    def _with_signals(self, joined: Batch, own_batch: Batch, replayed_rows: Tensor) -> Batch:
        """Add the signals that were measured for the step's own rows, and measure replayed rows."""
        measured = {}
        if len(replayed_rows):
            measured = self.add_method_signals(joined.select_rows(replayed_rows)).signals
        signals = {}
        for name in {**own_batch.signals, **measured}:
            if name not in joined.signals:  # the signals that `collate` has set stay as they are
                signals[name] = _write_first_rows(
                    torch.zeros_like(joined.old_logp), own_batch.signals.get(name)
                )
                if len(replayed_rows):
                    signals[name][replayed_rows] = measured[name].to(joined.old_logp)
        return joined.with_signals(signals)


def stored_rollouts(groups: Sequence[Group], batch: Batch, admitted: Tensor) -> list[StoredRollout]:
    """The rollouts whose `admitted` flag is set, with their advantages and log-probabilities."""
    pairs = [(group.task, rollout) for group in groups for rollout in group.rollouts]
    rows_of_rollout: list[list[int]] = [[] for _ in pairs]
    for row, rollout_index in enumerate(batch.rollout.tolist()):
        rows_of_rollout[rollout_index].append(row)
    return [
        StoredRollout(
            task.key,
            task.source,
            replace(rollout, index=NO_INDEX),
            _values_in_rows(batch.old_logp, rollout, rows),
            _values_in_rows(batch.advantage, rollout, rows),
        )
        for (task, rollout), rows, is_admitted in zip(
            pairs, rows_of_rollout, admitted.tolist(), strict=True
        )
        if is_admitted
    ]


def _values_in_rows(values: Tensor, rollout: Rollout, rows: Sequence[int]) -> ValuesPerAction:
    """The values in the rows of a rollout, without padding."""
    ends = [0] * len(rows)
    for row, positions in response_spans(rollout):
        ends[row] = max(ends[row], positions.stop)
    return tuple(tuple(values[row, :end].tolist()) for row, end in zip(rows, ends, strict=True))


def _remaining(groups: Sequence[Group], stays_in_batch: Tensor) -> list[Group]:
    """The groups with the rollouts that stay in the batch; empty groups are left out."""
    flags = iter(stays_in_batch.tolist())  # one for each rollout, in the order of the groups
    remaining = [group.with_rollouts(r for r in group.rollouts if next(flags)) for group in groups]
    return [group for group in remaining if group.rollouts]


def _group_of(stored: StoredRollout) -> Group:
    """A stored rollout as a separate group, marked as replayed."""
    prompt, _ = stored.rollout.turns[0]
    task = Task(stored.task_key, prompt, source=stored.task_source)
    return Group(task, (mark_replayed(stored.rollout),))


def _with_own_values(joined: Batch, own_batch: Batch) -> Batch:
    """Write the log-probs and advantages of the step's own rows into the first rows."""
    return replace(
        joined,
        old_logp=_write_first_rows(joined.old_logp.clone(), own_batch.old_logp),
        advantage=_write_first_rows(torch.zeros_like(joined.advantage), own_batch.advantage),
    )


def _with_stored_values(
    joined: Batch, replayed_rows: range, replayed: Sequence[StoredRollout]
) -> Batch:
    """Write the stored log-probs and advantages into the replayed rows, which are the last rows."""
    old_logp = joined.old_logp.clone()
    advantage = joined.advantage.clone()
    stored_rows = (pair for x in replayed for pair in zip(x.old_logp, x.advantage, strict=True))
    for row, (row_logp, row_advantage) in zip(replayed_rows, stored_rows, strict=True):
        old_logp[row, : len(row_logp)] = torch.tensor(row_logp, dtype=old_logp.dtype)
        advantage[row, : len(row_advantage)] = torch.tensor(row_advantage, dtype=advantage.dtype)
    return replace(joined, old_logp=old_logp, advantage=advantage)


def _write_first_rows(target: Tensor, values: Tensor | None) -> Tensor:
    """Write values into the first rows of the target; padding is cut or added."""
    if values is not None:
        width = min(target.shape[1], values.shape[1])
        target[: len(values), :width] = values[:, :width].to(target)
    return target
