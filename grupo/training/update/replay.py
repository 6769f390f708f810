"""Replay of a step: rollouts of the replay buffer join its batch, and some of its own enter it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

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
from grupo.rollouts.replay_buffer import ReplayBuffer, StoredRollout, ValuesPerAction
from grupo.storage.fault_injection import kill_point
from grupo.training.collect.groups import CollectedGroups
from grupo.training.update.collate import response_spans
from grupo.util.rng import make_rng

Collate = Callable[[CollectedGroups], Batch]
AddSignals = Callable[[Batch], Batch]


@dataclass(frozen=True)
class ReplayedStep:
    """A step after its replay.

    Args:
        collected: The groups of the step. The kept groups have lost the rollouts that drawn
            rollouts replace, and each drawn rollout is a separate kept group.
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
        collate: Collates the groups that are trained on, without measured signals.
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
        """Add drawn rollouts to the batch, and rollouts of the step to the buffer.

        A step without kept groups draws nothing.

        Args:
            rule: Chooses the rollouts.
            collected: The groups of the step.
            batch: The batch of the kept groups, with advantages.
            step: Number of the step, from 0.
            seed: Seed of the run.
        """
        rng = make_rng(seed, "replay", step)
        choose = rule if collected.kept_groups else no_replay
        plan = choose(ReplayRequest(batch, self.replay_buffer.priorities_and_steps, step, rng))
        drawn = self._read_stored(plan.drawn)
        ages = [float(step - self.replay_buffer.step[i]) for i in plan.drawn]
        kill_point("replay_buffer/drawn")
        self._admit(collected.kept_groups, batch, plan, step)
        if drawn or not plan.trained.all():
            collected, batch = self._join(collected, batch, plan, drawn)
        metrics = {
            "replay/buffer_size": float(len(self.replay_buffer)),
            "replay/drawn": float(len(drawn)),
        }
        metrics |= {"replay/age_mean": sum(ages) / len(ages)} if ages else {}
        return ReplayedStep(collected, batch, metrics)

    def _read_stored(self, positions: Sequence[int]) -> list[StoredRollout]:
        """The drawn rollouts. Of several ranks, rank 0 reads them and broadcasts them."""
        if self.ranks.size == 1 or not positions:
            return [self.replay_buffer.read(i) for i in positions]
        first = self.ranks.rank == 0
        data = [self.replay_buffer.read(i).to_data() for i in positions] if first else None
        shared = broadcast_from_rank_0(self.ranks, data, Phase.REPLAYED_ROLLOUTS_READ)
        return [StoredRollout.from_data(entry) for entry in shared]

    def _admit(self, groups: Sequence[Group], batch: Batch, plan: ReplayPlan, step: int) -> None:
        stored = stored_rollouts(groups, batch, plan.admitted)
        priority = advantage_magnitude(batch)[plan.admitted]
        self.replay_buffer.append(
            step, self.replay_buffer.to_lines(stored), priority, writes_segment=self.ranks.rank == 0
        )

    def _join(
        self,
        collected: CollectedGroups,
        batch: Batch,
        plan: ReplayPlan,
        drawn: Sequence[StoredRollout],
    ) -> tuple[CollectedGroups, Batch]:
        """The groups of the step with the drawn rollouts, and the batch of the kept groups."""
        groups = (*_remaining(collected.kept_groups, plan.trained), *map(_group_of, drawn))
        collected = replace(collected, kept_groups=groups)
        if not groups:
            return collected, batch.select_rows(torch.tensor([], dtype=torch.long))
        fresh = batch.select_rows(plan.trained[batch.rollout].nonzero()[:, 0])
        joined = _with_fresh(self.collate(collected), fresh)
        rows = range(len(fresh.rollout), len(joined.rollout))
        joined = _with_stored(joined, rows, drawn)
        return collected, self._with_signals(joined, fresh, torch.tensor(rows, dtype=torch.long))

    def _with_signals(self, joined: Batch, fresh: Batch, rows: Tensor) -> Batch:
        """Add measured signals to the joined batch; only the drawn rows need to be measured."""
        measured = self.add_method_signals(joined.select_rows(rows)).signals if len(rows) else {}
        signals = {}
        for name in {**fresh.signals, **measured}:
            if name not in joined.signals:
                signals[name] = _place(torch.zeros_like(joined.old_logp), fresh.signals.get(name))
                if len(rows):
                    signals[name][rows] = measured[name].to(joined.old_logp)
        return joined.with_signals(signals)


def stored_rollouts(groups: Sequence[Group], batch: Batch, admitted: Tensor) -> list[StoredRollout]:
    """The admitted rollouts of a batch of groups, with their advantages and log-probabilities."""
    pairs = [(group.task, rollout) for group in groups for rollout in group.rollouts]
    rows_of: list[list[int]] = [[] for _ in pairs]
    for row, rollout in enumerate(batch.rollout.tolist()):
        rows_of[rollout].append(row)
    return [
        StoredRollout(
            task.key,
            task.source,
            replace(rollout, index=-1),
            _rows(batch.old_logp, rollout, rows),
            _rows(batch.advantage, rollout, rows),
        )
        for (task, rollout), rows in compress(zip(pairs, rows_of, strict=True), admitted.tolist())
    ]


def _rows(values: Tensor, rollout: Rollout, rows: Sequence[int]) -> ValuesPerAction:
    """The values in the rows of a rollout, without padding."""
    ends = [0] * len(rows)
    for row, positions in response_spans(rollout):
        ends[row] = max(ends[row], positions.stop)
    return tuple(tuple(values[row, :end].tolist()) for row, end in zip(rows, ends, strict=True))


def _remaining(groups: Sequence[Group], trained: Tensor) -> list[Group]:
    """The groups without the rollouts that are not trained on."""
    flags = iter(trained.tolist())
    kept = [replace(g, rollouts=tuple(r for r in g.rollouts if next(flags))) for g in groups]
    return [group for group in kept if group.rollouts]


def _group_of(drawn: StoredRollout) -> Group:
    """A drawn rollout as a separate group."""
    observations = [observation for observation, _ in drawn.rollout.turns]
    task = Task(drawn.task_key, observations[0], source=drawn.task_source)
    return Group(task, (mark_replayed(drawn.rollout),))


def _with_fresh(joined: Batch, fresh: Batch) -> Batch:
    """Write the log-probs and advantages of the step's own rows into the first rows."""
    return replace(
        joined,
        old_logp=_place(joined.old_logp.clone(), fresh.old_logp),
        advantage=_place(torch.zeros_like(joined.advantage), fresh.advantage),
    )


def _with_stored(joined: Batch, rows: range, drawn: Sequence[StoredRollout]) -> Batch:
    """Write the stored log-probs and advantages into the last rows."""
    old_logp = joined.old_logp.clone()
    advantage = joined.advantage.clone()
    stored = (pair for x in drawn for pair in zip(x.old_logp, x.advantage, strict=True))
    for row, (logp, given) in zip(rows, stored, strict=True):
        old_logp[row, : len(logp)] = torch.tensor(logp, dtype=old_logp.dtype)
        advantage[row, : len(given)] = torch.tensor(given, dtype=advantage.dtype)
    return replace(joined, old_logp=old_logp, advantage=advantage)


def _place(target: Tensor, values: Tensor | None) -> Tensor:
    """Write values into the first rows of the target; padding is cut or added."""
    if values is not None:
        width = min(target.shape[1], values.shape[1])
        target[: len(values), :width] = values[:, :width].to(target)
    return target
