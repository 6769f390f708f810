"""What a beginner for grids is taught: where to go next, wherever one strayed to."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from grupo import Task
from grupo.core.component import component
from grupo.core.rng import make_rng
from grupo.envs.games.minigrid import MiniGridGame, MiniGridTasks
from grupo.toy.tokenizers import END_TOKEN

MOVES = ("left", "right", "forward")
State = tuple[int, int, int]  # column, row, direction: right, down, left, up
MOVE_OFFSETS = ((1, 0), (0, 1), (-1, 0), (0, -1))


@component
class GridWalks:
    """Walks up to somewhere in their middle; the answer is the first action of a shortest way.

    The walks themselves take it by a chance of `expert_prob`, else any.
    """

    grids: MiniGridTasks
    walks_per_grid: int = 80
    max_moves: int = 7
    expert_prob: float = 0.5

    def load(self) -> Sequence[Task]:
        """Prompts hold all that was seen and said so far."""
        grids = self.grids.load()
        return [self._walk(task, i) for task in grids for i in range(self.walks_per_grid)]

    def _walk(self, task: Task, index: int) -> Task:
        rng, grid = make_rng(0, "stroll", task.key, index), MiniGridGame(self.grids.env_id)
        text = grid.reset(task)
        for _ in range(rng.randrange(self.max_moves)):
            knows = rng.random() < self.expert_prob
            said = shortest_path_action(grid.env) if knows else rng.choice(MOVES)
            seen, _, over = grid.step(said)
            if over:
                return self._walk(task, index + self.walks_per_grid)
            text += f"{said}{END_TOKEN}{seen}"
        return Task(f"{task.key} {index}", text, shortest_path_action(grid.env))


def shortest_path_action(env: Any) -> str:
    """The first action of a shortest way to the goal."""
    start = (*map(int, env.agent_pos), int(env.agent_dir))
    first, waiting = {start: ""}, deque([start])
    while waiting:
        state = waiting.popleft()
        for action, after in _transitions(env, state):
            if after not in first:
                first[after] = first[state] or action
                waiting.append(after)
            thing = env.grid.get(*after[:2])
            if thing and thing.type == "goal":
                return first[after]
    raise ValueError("the goal cannot be reached")


def _transitions(env: Any, state: State) -> Iterator[tuple[str, State]]:
    x, y, turned = state
    yield "left", (x, y, (turned - 1) % 4)
    yield "right", (x, y, (turned + 1) % 4)
    ahead = (x + MOVE_OFFSETS[turned][0], y + MOVE_OFFSETS[turned][1])
    thing = env.grid.get(*ahead)
    if thing is None or thing.can_overlap():
        yield "forward", (*ahead, turned)


def next_action(task: Task) -> Sequence[str]:
    """What leads on."""
    return [task.reference_answer]
