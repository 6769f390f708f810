"""What a beginner for the lake is taught: moves of somebody who cannot see."""

from collections.abc import Sequence

from grupo import Task
from grupo.core.component import piece
from grupo.core.rng import generator
from grupo.envs.games.frozen_lake import Lake, Lakes
from grupo.toy.tokenizers import END

WALK = ("right", "down", "right", "down", "left", "up")  # two moves in three lead on


@piece
class Walks:
    """Blind walks, each up to somewhere in its middle; the answer is the next move."""

    lakes: Lakes
    each: int = 4
    longest: int = 8

    def load(self) -> Sequence[Task]:
        """Prompts hold all that was seen and said so far."""
        lakes = self.lakes.load()
        return [self._walk(task, i) for task in lakes for i in range(self.each)]

    def _walk(self, task: Task, number: int) -> Task:
        rng, lake = generator(0, "walk", task.key, number), Lake(slippery=False)
        text, over, moves = lake.reset(task), False, rng.randrange(self.longest)
        for _ in range(moves):
            move = rng.choice(WALK)
            seen, _, over = lake.step(move)
            if over:
                break
            text += f"{move}{END}{seen}"
        return Task(f"{task.key} {number}", text, rng.choice(WALK))


def next_move(task: Task) -> Sequence[str]:
    """What the walker did next."""
    return [task.answer]
