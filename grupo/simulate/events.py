"""A discrete-event simulation of training: generation, updates, and what waits for what.

A generator (a rank, or a server) decodes all its rollouts together: a decoding step takes
`decode_step + decode_row * rows` seconds. As in training, the rollouts of a step are generated
after those of the step before, with weights that are at most `max_staleness` updates old.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from grupo.simulate.costs import Costs
from grupo.simulate.lengths import Lengths


@dataclass(frozen=True)
class Machine:
    """The processes.

    Args:
        trainers: Processes that update the policy together.
        servers: Processes that generate; 0: the trainers generate.
        cores: Processors that all processes share; 0: each process has its own.
    """

    trainers: int
    servers: int = 0
    cores: int = 0

    @property
    def generators(self) -> int:
        """Number of processes that generate."""
        return self.servers or self.trainers


@dataclass(frozen=True)
class Workload:
    """Sizes of a training step.

    Args:
        prompts: Prompts per step.
        group_size: Rollouts per prompt.
        lengths: Tokens per rollout.
        max_staleness: As in a recipe.
        tokens_per_step: As in a recipe: tokens that a rollout generates within one step; 0: all.
    """

    prompts: int
    group_size: int
    lengths: Lengths
    max_staleness: int = 0
    tokens_per_step: int = 0


@dataclass(frozen=True)
class Prediction:
    """Means over the simulated steps, without those at the start.

    Args:
        seconds: Of a step.
        trainer_idle: Fraction of the time in which the trainers do not update.
        generators_busy: Mean fraction of the time in which a generator has rollouts.
        staleness: Mean age of the weights of a token when it is trained on, in updates.
        oldest: The largest such age.
    """

    seconds: float
    trainer_idle: float
    generators_busy: float
    staleness: float
    oldest: int


@dataclass
class _Rollout:
    group: int
    remaining: int
    begun: int  # step
    parts: list[tuple[int, int]] = field(default_factory=list)  # version, tokens


class Simulation:
    """Steps of training on a machine.

    Args:
        costs: Seconds of each phase.
        machine: The processes.
        job: What is trained.
        seed: Seed of the lengths.
    """

    def __init__(self, costs: Costs, machine: Machine, job: Workload, seed: int = 0) -> None:
        self.costs = costs
        self.machine = machine
        self.job = job
        self.rng = np.random.default_rng(seed)
        self.now = 0.0
        count = machine.generators
        self.rows = np.zeros(count)  # rollouts that a generator decodes
        self.decoded = np.zeros(count)  # tokens that each of its rows has had since the start
        self.next_end = np.full(count, np.inf)  # `decoded` at the end of its next rollout
        self.queues: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        self.update_left = 0.0  # seconds of the update, on a processor of its own
        self.wait_left = 0.0  # seconds until rewards or new weights have arrived
        self.busy = np.zeros(count)
        self.updating = 0.0

    def run(self, steps: int, warmup: int = 3) -> Prediction:
        """Simulate that many steps after `warmup` others."""
        ends: list[float] = []
        ages: list[tuple[float, float, int]] = []
        unfinished: list[_Rollout] = []
        ready: list[list[_Rollout]] = []  # rollouts to train on, by generated step
        updates = 0
        current: list[_Rollout] | None = None
        busy, updating = self.busy.copy(), 0.0
        while updates < warmup + steps:
            if current is None and len(ready) <= updates + self.job.max_staleness:
                current = unfinished + self._draw(len(ready))
                self._begin(current, updates)
            if self.update_left == 0.0 and len(ready) > updates:
                self.update_left = self._update_seconds(ready[updates])
                ages.append(_ages(ready[updates], updates))
            generated, updated = self._advance(generating=current is not None)
            if generated and current is not None:
                trained, unfinished = _split_by_group(current)
                ready.append(trained)
                current = None
            if updated:
                updates += 1
                ends.append(self.now)
                if updates == warmup:
                    busy, updating = self.busy.copy(), self.updating
        seconds = ends[-1] - ends[warmup - 1]
        tokens, total, oldest = (np.array(column) for column in zip(*ages[warmup:], strict=True))
        return Prediction(
            seconds / steps,
            1 - (self.updating - updating) / seconds,
            float((self.busy - busy).mean()) / seconds,
            float(total.sum() / max(tokens.sum(), 1)),
            int(oldest.max()),
        )

    def _draw(self, step: int) -> list[_Rollout]:
        size = self.job.group_size
        lengths = self.job.lengths.draw(self.rng, self.job.prompts * size)
        first = step * self.job.prompts
        return [_Rollout(first + i // size, int(n), step) for i, n in enumerate(lengths)]

    def _begin(self, rollouts: list[_Rollout], version: int) -> None:
        """Give the rollouts to the generators, a group to one of them."""
        limit = self.job.tokens_per_step or 1 << 60
        members: dict[int, list[_Rollout]] = {}
        for rollout in rollouts:
            members.setdefault(rollout.group, []).append(rollout)
        load = np.zeros(self.machine.generators)
        for i, group in enumerate(members.values()):
            generator = int(load.argmin()) if self.machine.servers else i % len(load)
            load[generator] += len(group)
            for rollout in group:
                tokens = min(rollout.remaining, limit)
                rollout.parts.append((version, tokens))
                rollout.remaining -= tokens
                if tokens:
                    heapq.heappush(
                        self.queues[generator], (self.decoded[generator] + tokens, id(rollout))
                    )
        for generator, queue in enumerate(self.queues):
            self.rows[generator] = len(queue)
            self.next_end[generator] = queue[0][0] if queue else np.inf
        self.wait_left = self.costs.score + self.costs.weight_transfer

    def _advance(self, *, generating: bool) -> tuple[bool, bool]:
        """Go on to the next event; returns whether generation and whether the update ended."""
        active = self.rows > 0
        jobs = int(active.sum()) + (self.machine.trainers if self.update_left else 0)
        cores = self.machine.cores
        speed = min(1.0, cores / jobs) if cores and jobs else 1.0
        token = (self.costs.decode_step + self.costs.decode_row * self.rows) / speed
        left = np.subtract(
            self.next_end, self.decoded, where=active, out=np.full(len(token), np.inf)
        )
        until_end = np.multiply(left, token, where=active, out=left)
        only_waits = generating and not active.any()
        candidates = [float(until_end.min())]
        candidates += [self.update_left / speed] if self.update_left else []
        candidates += [self.wait_left] if only_waits else []
        seconds = min(candidates)
        self.now += seconds
        self.busy += active * seconds
        self.decoded[active] += seconds / token[active]
        generated = only_waits and seconds >= self.wait_left
        if only_waits:
            self.wait_left -= seconds
        for generator in np.flatnonzero(active & (until_end <= seconds * (1 + 1e-12))):
            self._end_rollouts(int(generator))
        updated = bool(self.update_left) and self.update_left / speed <= seconds * (1 + 1e-12)
        if self.update_left:
            self.updating += seconds
            self.update_left = 0.0 if updated else self.update_left - seconds * speed
        return generated, updated

    def _end_rollouts(self, generator: int) -> None:
        """Remove the rollouts that end now."""
        queue = self.queues[generator]
        self.decoded[generator] = self.next_end[generator]
        while queue and queue[0][0] <= self.decoded[generator]:
            heapq.heappop(queue)
        self.rows[generator] = len(queue)
        self.next_end[generator] = queue[0][0] if queue else np.inf

    def _update_seconds(self, rollouts: list[_Rollout]) -> float:
        """Of the update, the sum of the gradients, and what each rank does for the whole batch."""
        costs, ranks = self.costs, self.machine.trainers
        tokens = sum(tokens for rollout in rollouts for _, tokens in rollout.parts)
        own = costs.update_step + costs.update_token * tokens / ranks
        exchanged = costs.gradient_sum * 2 * (ranks - 1) / ranks
        return max(own + exchanged + costs.batch_row * len(rollouts), 1e-9)


def _split_by_group(rollouts: list[_Rollout]) -> tuple[list[_Rollout], list[_Rollout]]:
    """Rollouts of groups that have ended, and the others."""
    waiting = {rollout.group for rollout in rollouts if rollout.remaining}
    ended = [rollout for rollout in rollouts if rollout.group not in waiting]
    return ended, [rollout for rollout in rollouts if rollout.group in waiting]


def _ages(rollouts: list[_Rollout], updates: int) -> tuple[float, float, int]:
    """Tokens, the sum of their ages in updates, and the largest age."""
    parts = [(updates - version, tokens) for r in rollouts for version, tokens in r.parts if tokens]
    oldest = max((age for age, _ in parts), default=0)
    return sum(n for _, n in parts), sum(age * n for age, n in parts), oldest
