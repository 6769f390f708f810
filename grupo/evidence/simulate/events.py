"""A discrete-event simulation of training: generation, updates, and what waits for what.

As in training, the steps are generated one after the other. Step n begins when the one before it
has been generated and all but `steps_ahead` of the updates before it have ended, with the weights
of that update. With `tokens_per_step`, a step continues unfinished groups and begins new ones; a
group is trained on in the first step by whose end all its rollouts have ended.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grupo.evidence.simulate.costs import Costs
from grupo.evidence.simulate.generation import Generators, Group, SimulatedRollout
from grupo.evidence.simulate.lengths import LengthDistribution
from grupo.evidence.simulate.updates import Trainers
from grupo.util.errors import ConfigError

UNLIMITED = 1 << 60  # tokens


@dataclass(frozen=True)
class Machine:
    """The processes.

    Args:
        trainers: Processes that update the policy together.
        servers: Processes that generate; 0: the trainers generate.
        cores: Processors that all processes share; 0: each process has its own.
        contention: How much longer work takes beside each other busy process or thread, because
            they share caches and the bandwidth of the memory: 0.1 is a tenth. With `cores` only.
    """

    trainers: int
    servers: int = 0
    cores: float = 0.0
    contention: float = 0.0

    def share(self, jobs: int) -> float:
        """Share of a processor that each job has while `jobs` jobs run."""
        return min(1.0, self.cores / jobs) if self.cores and jobs else 1.0

    def slowdown(self, jobs: int) -> float:
        """Processor seconds of work beside others, relative to those alone."""
        return 1.0 + self.contention * max(0, jobs - 1) if self.cores else 1.0

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
        tokens_per_step: As in a recipe.

    Raises:
        ConfigError: A recipe with these numbers is refused.
    """

    prompts: int
    group_size: int
    lengths: LengthDistribution
    max_staleness: int = 0
    tokens_per_step: int = 0

    def __post_init__(self) -> None:
        limit, tokens = self.lengths.limit, self.tokens_per_step
        if tokens >= limit:
            raise ConfigError(
                f"tokens_per_step: {tokens}, but answers end after {limit} tokens. Allowed: 0, or a"
                " smaller number than that."
            )
        if self.max_staleness < self.later_steps:
            raise ConfigError(
                f"max_staleness: {self.max_staleness}. Allowed with tokens_per_step={tokens} and"
                f" answers of up to {limit} tokens: {self.later_steps} or more."
            )

    @cached_property
    def later_steps(self) -> int:
        """Steps after its first in which a group may be continued."""
        return -(-self.lengths.limit // self.tokens_per_step) - 1 if self.tokens_per_step else 0

    @property
    def steps_ahead(self) -> int:
        """Steps that generation runs ahead of the updates."""
        spare = self.max_staleness - self.later_steps
        return min(spare, 1) if self.tokens_per_step else spare


@dataclass(frozen=True)
class Prediction:
    """Means over the simulated steps, without those at the start.

    Args:
        seconds: Of a step.
        trainer_idle: Fraction of the time in which the trainers do not update.
        generators_busy: Mean fraction of the time in which a generator has rollouts.
        staleness: Mean age of the weights of a token when it is trained on, in updates.
        oldest: The largest such age.
        processor_seconds: Work of all processes in a step.
    """

    seconds: float
    trainer_idle: float
    generators_busy: float
    staleness: float
    oldest: int
    processor_seconds: float


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
        self.generators = Generators(costs, machine.generators, balances=machine.servers > 0)
        self.trainers = Trainers(costs, machine.trainers)
        self.current: list[Group] | None = None  # groups of the step that is generated
        self.unfinished: list[Group] = []  # groups that the next step continues
        self.ready: list[list[tuple[int, Group]]] = []  # ranks and groups, by generated step
        self.wait_left = 0.0  # seconds until rewards, weights and rollouts have arrived
        self.updates = 0
        self.processor_seconds = 0.0

    def run(self, steps: int, warmup: int = 3) -> Prediction:
        """Simulate that many steps, after `warmup` and those in which groups are continued."""
        warmup += self.job.later_steps + self.job.steps_ahead
        self._run_until(warmup)
        start, work, updating = self.now, self.processor_seconds, self.trainers.busy
        busy = self.generators.busy.copy()
        ages = self._run_until(warmup + steps)
        seconds = self.now - start
        tokens = sum(ages.values())
        return Prediction(
            seconds / steps,
            max(0.0, 1 - (self.trainers.busy - updating) / seconds),
            float((self.generators.busy - busy).mean()) / seconds,
            sum(age * count for age, count in ages.items()) / max(tokens, 1),
            max(ages, default=0),
            (self.processor_seconds - work) / steps,
        )

    def _run_until(self, updates: int) -> dict[int, int]:
        """Run until `updates` updates have ended; return the number of trained tokens by age."""
        ages: defaultdict[int, int] = defaultdict(int)
        while self.updates < updates:
            if self.current is None and len(self.ready) <= self.updates + self.job.steps_ahead:
                self._begin_step(len(self.ready))
            if not self.trainers.updating and len(self.ready) > self.updates:
                trained = self.ready[self.updates]
                self.trainers.begin(trained, stale=self.job.max_staleness > 0)
                for rollout in (rollout for _, group in trained for rollout in group):
                    for version, tokens in rollout.parts:
                        ages[self.updates - version] += tokens
            self._advance()
        return ages

    def _begin_step(self, step: int) -> None:
        """Continue unfinished groups and begin those of a step."""
        size = self.job.group_size
        lengths = self.job.lengths.draw(self.rng, self.job.prompts * size).tolist()
        new = [
            [SimulatedRollout(tokens) for tokens in lengths[i : i + size]]
            for i in range(0, len(lengths), size)
        ]
        self.current = [*self.unfinished, *new]
        version = max(0, step - self.job.steps_ahead)
        self.generators.begin(self.current, version, self.job.tokens_per_step or UNLIMITED)
        self.wait_left = self._wait_seconds(self.current)

    def _wait_seconds(self, groups: list[Group]) -> float:
        """Seconds between the last token of a step and its rollouts on all ranks."""
        costs, ranks = self.costs, self.machine.trainers
        seconds = costs.score + costs.weight_transfer
        if ranks == 1:
            return seconds
        tokens = sum(rollout.tokens for group in groups for rollout in group)
        return seconds + (costs.serialize_token / ranks + costs.deserialize_token) * tokens

    def _advance(self) -> None:
        """Go on to the next event."""
        generating, updating = self.generators.active, self.trainers.active
        jobs = int(generating.sum() + updating.sum())
        share = self.machine.share(jobs)
        speed = share / self.machine.slowdown(jobs)
        decoding_speed = speed / self._generation_slowdown(updating)
        only_waits = self.current is not None and not generating.any()
        waiting = self.wait_left if only_waits else np.inf
        seconds = min(
            waiting,
            self.generators.until_event(decoding_speed),
            self.trainers.until_event(speed),
        )
        self.now += seconds
        self.processor_seconds += jobs * share * seconds
        self.generators.advance(seconds, decoding_speed)
        if only_waits:
            self.wait_left -= seconds
            if waiting <= seconds:
                self._end_step()
        self.updates += self.trainers.advance(seconds, speed)

    def _generation_slowdown(self, updating: np.ndarray) -> np.ndarray:
        """Processor seconds of generation in each process, relative to those without an update."""
        if self.machine.servers:
            return np.ones(self.machine.servers)
        return 1.0 + self.costs.generation_slowdown * updating

    def _end_step(self) -> None:
        """Pass the groups whose rollouts have all ended on to the update."""
        groups = self.current or []
        ended = [not any(rollout.remaining for rollout in group) for group in groups]
        ranks = [i % self.machine.trainers for i in range(len(groups))]
        by_rank = list(zip(ranks, groups, strict=True))
        self.ready.append([x for x, end in zip(by_rank, ended, strict=True) if end])
        self.unfinished = [group for group, end in zip(groups, ended, strict=True) if not end]
        self.current = None
