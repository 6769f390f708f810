"""What a beginner for the lake is taught: moves of somebody who cannot see."""

from collections.abc import Sequence

from grupo import Task
from grupo.core.component import component
from grupo.core.rng import make_rng
from grupo.envs.games.frozen_lake import FrozenLakeGame, FrozenLakeTasks
from grupo.toy.tokenizers import END_TOKEN

MOVE_CHOICES = ("right", "down", "right", "down", "left", "up")  # two moves in three lead on


@component
class RandomWalks:
    """Blind walks, each up to somewhere in its middle; the answer is the next move."""

    lakes: FrozenLakeTasks
    walks_per_lake: int = 4
    max_moves: int = 8

    def load(self) -> Sequence[Task]:
        """Prompts hold all that was seen and said so far."""
        lakes = self.lakes.load()
        return [self._walk(task, i) for task in lakes for i in range(self.walks_per_lake)]

    def _walk(self, task: Task, index: int) -> Task:
        rng, lake = make_rng(0, "walk", task.key, index), FrozenLakeGame(is_slippery=False)
        text, over, moves = lake.reset(task), False, rng.randrange(self.max_moves)
        for _ in range(moves):
            move = rng.choice(MOVE_CHOICES)
            seen, _, over = lake.step(move)
            if over:
                break
            text += f"{move}{END_TOKEN}{seen}"
        return Task(f"{task.key} {index}", text, rng.choice(MOVE_CHOICES))


def next_move(task: Task) -> Sequence[str]:
    """What the walker did next."""
    return [task.reference_answer]
