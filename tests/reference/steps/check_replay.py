"""Replay, step by step: what is stored, what is drawn how often, and the batch that is trained on.

The step goes through `Replayer`, as in a run: the rule chooses, the buffer stores, the drawn
rollouts join the batch with the advantages and log-probabilities that they were given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch
from torch import Tensor

from grupo.algo.replay_rules import ReplayRequest
from grupo.core.batch import Batch, TaskHistory
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Response, Rollout, Task
from grupo.distributed.base import SINGLE_RANK
from grupo.method import Method
from grupo.methods.remix import remix
from grupo.methods.skywork_r1v2 import skywork_r1v2
from grupo.methods.vl_rethinker import vl_rethinker
from grupo.rollouts.replay_buffer import ReplayBuffer
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.update.collate import collate
from grupo.training.update.replay import Replayer
from tests.reference.steps.collecting import assert_frequencies, frequencies
from tests.reference.steps_plain import replay as plain

SEED = 5
NUM_SEEDS = 500
STEPS = (  # the advantages of the rollouts of each step, in groups of two
    (1.0, -1.0, 0.0, 0.0, 0.5, -0.5),
    (0.0, 0.0, 0.0, 0.0, 2.0, -2.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.25, -0.25, 1.5, -1.5, 0.75, -0.75),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 3.0, -3.0, 0.0, 0.0),
    (1.0, -1.0, 0.0, 0.0, 0.0, 0.0),
)


def name_of(step: int, i: int) -> str:
    """The name of the i-th rollout of a step."""
    return f"{step}.{i}"


def logp_of(step: int, i: int) -> tuple[float, float]:
    """Log-probabilities that identify a rollout, two actions each."""
    return (-1.0 - step - 0.01 * i, -2.0 - step - 0.01 * i)


def batch_of(collected: CollectedGroups) -> Batch:
    """The groups as a batch whose advantages are 0."""
    batch = collate(collected.kept_groups, lambda rollouts: torch.arange(len(rollouts)), _history)
    zero = torch.zeros_like(batch.old_logp)
    return replace(batch, advantage=zero)


def _history(task: Task) -> TaskHistory:
    return TaskHistory()


def groups_of(step: int, advantages: Sequence[float]) -> CollectedGroups:
    """The groups of a step; the text of a rollout is its name."""
    rollouts = [
        Rollout(
            (("?", Response((step, i), logp_of(step, i), text=name_of(step, i))),),
            reward=0.0,
            index=i,
        )
        for i in range(len(advantages))
    ]
    groups = tuple(
        Group(Task(f"{step}/{i}", "?"), tuple(rollouts[i : i + 2]))
        for i in range(0, len(rollouts), 2)
    )
    return CollectedGroups(groups, groups)


@dataclass
class Run:
    """A run that replays.

    Args:
        method: The method, with schedules and controllers.
    """

    method: Method

    def __post_init__(self) -> None:
        self.buffer = ReplayBuffer(self.method.requires.replay_buffer)
        self.replayer = Replayer(self.buffer, batch_of, lambda batch: batch, SINGLE_RANK)

    def rule(self, step: int) -> Callable[[ReplayRequest], object]:
        """The rule of a step, from 0."""
        return resolve_schedules(self.method.replay, 0.0, {"tokens/generated": [1.0] * step})

    def batch(self, step: int) -> tuple[CollectedGroups, Batch]:
        """The groups of a step and their batch, with the scripted advantages."""
        collected = groups_of(step, STEPS[step])
        batch = batch_of(collected)
        per_row = torch.tensor(STEPS[step], dtype=batch.advantage.dtype)[:, None]
        return collected, replace(batch, advantage=per_row * batch.mask)

    def stored(self) -> list[plain.Stored]:
        """The stored rollouts, oldest first."""
        result = []
        for i in range(len(self.buffer)):
            entry = self.buffer.read(i)
            ((first, _),) = entry.advantage
            result.append(plain.Stored((entry.rollout.text, first), int(self.buffer.step[i])))
        return result

    def draws(self, step: int, num_seeds: int) -> dict[tuple[str, ...], float]:
        """How often the rule of a step draws each sequence of stored rollouts."""
        names = [s.rollout[0] for s in self.stored()]
        rule = self.rule(step)
        _, batch = self.batch(step)

        def draw(seed: int) -> list[str]:
            candidates = self.buffer.priorities_and_steps
            plan = rule(ReplayRequest(batch, candidates, step, Random(seed)))
            return [names[i] for i in plan.drawn]

        return dict(frequencies(draw, num_seeds))

    def step(self, step: int) -> tuple[list[plain.Rollout], list[tuple[float, ...]]]:
        """Replay in a step; the batch in order: (name, advantage) and the log-probabilities."""
        collected, batch = self.batch(step)
        replayed = self.replayer(self.rule(step), collected, batch, step, SEED)
        rollouts = [r for group in replayed.collected.kept_groups for r in group.rollouts]
        rows = zip(
            rollouts, _rows(replayed.batch.advantage), _rows(replayed.batch.old_logp), strict=True
        )
        trained, logps = [], []
        for rollout, advantage, logp in rows:
            assert len(set(advantage)) == 1
            trained.append((rollout.text, advantage[0]))
            logps.append(logp)
        return trained, logps


def _rows(values: Tensor) -> list[tuple[float, ...]]:
    return [tuple(row) for row in values.tolist()]


def check_filling(
    method: Method, capacity: int, max_age: int, max_share: float, alpha: float = 1.0
) -> None:
    """Compare buffer, draws and batch of each step of a method that fills empty places."""
    run = Run(method)
    buffer: list[plain.Stored] = []
    numbers = set()
    for step, advantages in enumerate(STEPS):
        own = [(name_of(step, i), a) for i, a in enumerate(advantages)]
        weight = plain.weights(buffer, step, alpha, max_age)
        count = min(plain.fill_count(advantages, max_share), sum(w > 0 for w in weight))
        numbers.add(count)
        _check_law(run, step, buffer, weight, count)
        names = {s.rollout[0]: s.rollout for s in buffer}
        before = [s.rollout for s in run.stored()]
        trained, logps = run.step(step)
        drawn = [names[name] for name, _ in trained[len(trained) - count :]] if count else []
        assert set(drawn) <= set(before)
        assert trained == plain.filled_batch(own, drawn)
        _check_logps(trained, logps)
        buffer = plain.stored_after(buffer, [r for r in own if r[1]], step, capacity)
        assert run.stored() == buffer
    assert len(numbers) > 2


def check_mixing() -> None:
    """Compare buffer, draws and batch of each step of ReMix, whose first phase has six steps."""
    capacity = 20
    run = Run(remix(reincarnation_step=6, buffer_capacity=capacity))
    buffer: list[plain.Stored] = []
    numbers = []
    for step, advantages in enumerate(STEPS):
        own = [(name_of(step, i), a) for i, a in enumerate(advantages)]
        recent = plain.in_window(buffer, step, 2)
        share = 0.4 if step < 6 else 0.0
        count = min(plain.mixed_count(len(own), share), len(recent))
        numbers.append(count)
        if count:
            weight = [float(i in recent) for i in range(len(buffer))]
            _check_law(run, step, buffer, weight, 1 if count > 2 else count)
        names = {s.rollout[0]: s.rollout for s in buffer}
        trained, logps = run.step(step)
        assert trained[: len(own)] == own
        drawn = [names[name] for name, _ in trained[len(own) :]]
        assert len(drawn) == count
        assert len(set(drawn)) == count
        assert set(drawn) <= {buffer[i].rollout for i in recent}
        assert trained[len(own) :] == drawn
        _check_logps(trained, logps)
        buffer = plain.stored_after(buffer, own, step, capacity)
        assert run.stored() == buffer
    assert numbers == [0, 4, 4, 4, 4, 4, 0, 0, 0]


def _check_law(
    run: Run,
    step: int,
    buffer: Sequence[plain.Stored],
    weight: Sequence[float],
    count: int,
) -> None:
    """Compare the probabilities of the first one or two draws."""
    if not count:
        assert run.draws(step, 10) == {(): 1.0}
        return
    found = run.draws(step, NUM_SEEDS)
    shown = min(count, 2)
    law = plain.sequence_probabilities(weight, shown)
    expected = {tuple(buffer[i].rollout[0] for i in order): p for order, p in law.items()}
    beginnings: dict[tuple[str, ...], float] = {}
    for names, frequency in found.items():
        key = names[:shown]
        beginnings[key] = beginnings.get(key, 0.0) + frequency
    assert_frequencies(beginnings, expected, NUM_SEEDS)


def _check_logps(trained: Sequence[plain.Rollout], logps: Sequence[tuple[float, ...]]) -> None:
    """Fail unless each rollout has the log-probabilities of the policy that generated it."""
    for (name, _), logp in zip(trained, logps, strict=True):
        step, i = map(int, name.split("."))
        assert max(abs(a - b) for a, b in zip(logp, logp_of(step, i), strict=True)) < 1e-6


CHECKS: dict[str, Callable[[], None]] = {
    "remix: replay": check_mixing,
    "skywork_r1v2": lambda: check_filling(
        skywork_r1v2(capacity=6, max_age=2, max_share=0.5), 6, 2, 0.5
    ),
    "vl_rethinker(alpha=2)": lambda: check_filling(
        vl_rethinker(capacity=5, alpha=2.0), 5, 0, 1.0, 2.0
    ),
    "vl_rethinker": lambda: check_filling(vl_rethinker(capacity=5), 5, 0, 1.0),
}
