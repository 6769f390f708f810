"""Demonstrations on FrozenLake: random moves that do not depend on the lake."""

from collections.abc import Sequence

from grupo import Task
from grupo.core.component import component
from grupo.envs.games.frozen_lake import FrozenLake, FrozenLakeTasks
from grupo.toy.tokenizers import END_TOKEN
from grupo.util.rng import make_rng

MOVE_CHOICES = ("right", "down", "right", "down", "left", "up")  # two in three lead to the goal


@component
class RandomWalks:
    """Tasks to continue a random walk: the prompt is its beginning, the answer its next move.

    Args:
        lakes: The lakes to walk on.
        walks_per_lake: Walks on each lake.
        max_moves: The walk in a prompt has fewer moves than this.
    """

    lakes: FrozenLakeTasks
    walks_per_lake: int = 4
    max_moves: int = 8

    def load(self) -> Sequence[Task]:
        """The tasks; a prompt contains all observations and moves so far."""
        lakes = self.lakes.load()
        return [self._walk(task, i) for task in lakes for i in range(self.walks_per_lake)]

    def _walk(self, task: Task, index: int) -> Task:
        rng, game = make_rng(0, "walk", task.key, index), FrozenLake()()
        text = game.reset(task)
        for _ in range(rng.randrange(self.max_moves)):
            move = rng.choice(MOVE_CHOICES)
            result = game.step(move)
            if result.done:
                break
            text += f"{move}{END_TOKEN}{result.observation}"
        return Task(f"{task.key} {index}", text, rng.choice(MOVE_CHOICES))


def next_move(task: Task) -> Sequence[str]:
    """The next move of the walk."""
    return [task.reference_answer]
