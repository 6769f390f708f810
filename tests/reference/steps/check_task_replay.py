"""Rollouts of a task that are remembered and join its later groups, step by step."""

from collections.abc import Callable, Sequence

from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.methods.arpo_gui_replay import arpo_gui_replay
from grupo.methods.r3 import r3
from tests.reference.steps.collecting import (
    assert_frequencies,
    collect_steps,
    frequencies,
    make_history,
    make_tasks,
)
from tests.reference.steps_plain import task_replay as plain

TERM = "env_reward"
REWARDS = {  # the rewards of the groups of each task
    "0": (
        (0, 0, 0),
        (1, 0, 0),
        (0, 0, 0),
        (0.15, 0.15, 0.15),  # failed, and yet remembered by ARPO
        (1, 1, 1),
        (0.05, 0.1, 0.1),
        (0.25, 0.25, 0.25),
        (0, 0, 0),
        (0.15, 0.15, 0.3),
        (0, 0, 0.15),  # a deviation of 0.07
    ),
    "1": (
        (1, 1, 1),
        (1, 1, 1),
        (0, 1, 0),
        (1, 1, 1),
        (0, 0, 0),
        (1, 0.75, 1),
        (0, 0, 0),
        (0.5, 0, 0.25),
        (1, 1, 1),
        (0.19, 0.19, 0),
    ),
}
NUM_STEPS = 10


def named(name: str, reward: float, key: int = 0) -> Rollout:
    """A rollout whose text is its name."""
    response = Response((key,), (-1.0,), text=name, rng_key=key)
    return Rollout((("?", response),), reward=float(reward), reward_terms={TERM: float(reward)})


def pairs(rollouts: Sequence[Rollout]) -> list[plain.Rollout]:
    """Name and reward of each rollout."""
    return [(r.text, r.reward) for r in rollouts]


def check_steps(
    method: Method,
    join: Callable[[list[plain.Rollout], list[plain.Rollout], list[plain.Rollout]], object],
    remember: Callable[[list[plain.Rollout], list[plain.Rollout]], list[plain.Rollout]],
) -> None:
    """Compare each step.

    Args:
        method: The method.
        join: Fails unless a trained group follows from the sampled one and the remembered ones.
        remember: The remembered rollouts of a task after its group, from those before.
    """
    tasks, history = make_tasks(2), make_history(method)
    memory: dict[str, list[plain.Rollout]] = {task.key: [] for task in tasks}
    replayed = 0
    for step in range(NUM_STEPS):

        def answer(task: Task, step: int = step) -> list[Rollout]:
            rewards = REWARDS[task.key][step]
            return [named(f"{task.key}.{step}.{i}", r) for i, r in enumerate(rewards)]

        (found,) = collect_steps(method, answer, tasks, num_groups=2, num_steps=1, history=history)
        sampled = {g.task.key: pairs(g.rollouts) for g in found.collected.sampled_groups}
        for group in found.collected.kept_groups:
            key = group.task.key
            join(pairs(group.rollouts), sampled[key], memory[key])
            old = [r for r in group.rollouts if r.source == "replayed"]
            assert {r.text for r in old} == {r.text for r in group.rollouts} - {
                name for name, _ in sampled[key]
            }
            assert all(response.off_context for r in old for _, response in r.turns)
            replayed += len(old)
        for key, group in sampled.items():
            memory[key] = remember(memory[key], group)
            assert pairs(history.replay_rollouts.get(key, ())) == memory[key]
    assert replayed >= 4


def check_arpo() -> None:
    """Compare the groups of ARPO; a buffer has three successes."""

    def join(
        trained: list[plain.Rollout], group: list[plain.Rollout], memory: list[plain.Rollout]
    ) -> None:
        options = memory or [None]
        assert trained in [plain.arpo_group(group, success) for success in options]

    check_steps(
        arpo_gui_replay(capacity=3), join, lambda memory, g: plain.arpo_memory(memory, g, 3)
    )


def check_arpo_draw() -> None:
    """A failed group gets each remembered success with the same probability."""
    method = arpo_gui_replay()
    task = Task("0", "?", replays=tuple(named(f"old {i}", 0.5) for i in range(4)))

    def draw(seed: int) -> list[str]:
        group = Group(task, tuple(named(f"new {i}", 0.0, 10 * seed + i) for i in range(3)))
        (joined,) = method.filter([group])
        return [joined.rollouts[0].text]

    law = {(f"old {i}",): 0.25 for i in range(4)}
    assert_frequencies(frequencies(draw, 3000), law, 3000)


def check_r3(count: int) -> None:
    """Compare the groups of R^3 that replay `count` rollouts."""

    def join(
        trained: list[plain.Rollout], group: list[plain.Rollout], memory: list[plain.Rollout]
    ) -> None:
        assert trained == plain.r3_group(group, memory, count)

    check_steps(
        r3(max_length=4, num_replays=count),
        join,
        lambda memory, group: plain.r3_memory(memory, group, count),
    )


CHECKS: dict[str, Callable[[], None]] = {
    "arpo_gui_replay": check_arpo,
    "arpo_gui_replay: probabilities": check_arpo_draw,
    "r3": lambda: check_r3(1),
    "r3(num_replays=2)": lambda: check_r3(2),
}
