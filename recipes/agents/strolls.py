"""What a beginner for grids is taught: where to go next, wherever one strayed to."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from grupo import Task
from grupo.core.component import piece
from grupo.core.rng import generator
from grupo.envs.games.minigrid import Grid, Grids
from grupo.toy.tokenizers import END

MOVES = ("left", "right", "forward")
State = tuple[int, int, int]  # column, row, direction: right, down, left, up
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))


@piece
class Strolls:
    """Walks up to somewhere in their middle; the answer is the first action of a shortest way.

    The walks themselves take it by a chance of `knowing`, else any.
    """

    grids: Grids
    each: int = 80
    longest: int = 7
    knowing: float = 0.5

    def load(self) -> Sequence[Task]:
        """Prompts hold all that was seen and said so far."""
        grids = self.grids.load()
        return [self._stroll(task, i) for task in grids for i in range(self.each)]

    def _stroll(self, task: Task, number: int) -> Task:
        rng, grid = generator(0, "stroll", task.key, number), Grid(self.grids.name)
        text = grid.reset(task)
        for _ in range(rng.randrange(self.longest)):
            knows = rng.random() < self.knowing
            said = shortest(grid.env) if knows else rng.choice(MOVES)
            seen, _, over = grid.step(said)
            if over:
                return self._stroll(task, number + self.each)
            text += f"{said}{END}{seen}"
        return Task(f"{task.key} {number}", text, shortest(grid.env))


def shortest(env: Any) -> str:
    """The first action of a shortest way to the goal."""
    start = (*map(int, env.agent_pos), int(env.agent_dir))
    first, waiting = {start: ""}, deque([start])
    while waiting:
        state = waiting.popleft()
        for action, after in _ways(env, state):
            if after not in first:
                first[after] = first[state] or action
                waiting.append(after)
            thing = env.grid.get(*after[:2])
            if thing and thing.type == "goal":
                return first[after]
    raise ValueError("the goal cannot be reached")


def _ways(env: Any, state: State) -> Iterator[tuple[str, State]]:
    x, y, turned = state
    yield "left", (x, y, (turned - 1) % 4)
    yield "right", (x, y, (turned + 1) % 4)
    ahead = (x + STEPS[turned][0], y + STEPS[turned][1])
    thing = env.grid.get(*ahead)
    if thing is None or thing.can_overlap():
        yield "forward", (*ahead, turned)


def next_action(task: Task) -> Sequence[str]:
    """What leads on."""
    return [task.answer]
