"""Demonstrations on MiniGrid: the first action of a shortest path from wherever a walk led."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from grupo import Task
from grupo.core.component import component
from grupo.envs.games.minigrid import MiniGrid, MiniGridTasks
from grupo.toy.tokenizers import END_TOKEN
from grupo.util.rng import make_rng

MOVES = ("left", "right", "forward")
State = tuple[int, int, int]  # column, row, direction: right, down, left, up
MOVE_OFFSETS = ((1, 0), (0, 1), (-1, 0), (0, -1))


@component
class GridWalks:
    """Tasks to continue a walk: the prompt is its beginning, the answer the best next action.

    Args:
        grids: The layouts to walk in.
        walks_per_grid: Walks in each layout.
        max_moves: The walk in a prompt has fewer actions than this.
        expert_prob: Probability of the best action in the walk itself; else the action is random.
    """

    grids: MiniGridTasks
    walks_per_grid: int = 80
    max_moves: int = 7
    expert_prob: float = 0.5

    def load(self) -> Sequence[Task]:
        """The tasks; a prompt contains all observations and actions so far."""
        grids = self.grids.load()
        return [self._walk(task, i) for task in grids for i in range(self.walks_per_grid)]

    def _walk(self, task: Task, index: int) -> Task:
        rng, game = make_rng(0, "stroll", task.key, index), MiniGrid(self.grids.env_id)()
        text = game.reset(task)
        for _ in range(rng.randrange(self.max_moves)):
            is_expert = rng.random() < self.expert_prob
            action = shortest_path_action(game.env) if is_expert else rng.choice(MOVES)
            result = game.step(action)
            if result.done:
                return self._walk(task, index + self.walks_per_grid)
            text += f"{action}{END_TOKEN}{result.observation}"
        return Task(f"{task.key} {index}", text, shortest_path_action(game.env))


def shortest_path_action(env: Any) -> str:
    """The first action of a shortest path to the goal, by breadth-first search."""
    start = (*map(int, env.agent_pos), int(env.agent_dir))
    first_actions, queue = {start: ""}, deque([start])
    while queue:
        state = queue.popleft()
        for action, next_state in _transitions(env, state):
            if next_state not in first_actions:
                first_actions[next_state] = first_actions[state] or action
                queue.append(next_state)
            cell = env.grid.get(*next_state[:2])
            if cell and cell.type == "goal":
                return first_actions[next_state]
    raise ValueError("the goal cannot be reached")


def _transitions(env: Any, state: State) -> Iterator[tuple[str, State]]:
    x, y, direction = state
    yield "left", (x, y, (direction - 1) % 4)
    yield "right", (x, y, (direction + 1) % 4)
    ahead = (x + MOVE_OFFSETS[direction][0], y + MOVE_OFFSETS[direction][1])
    cell = env.grid.get(*ahead)
    if cell is None or cell.can_overlap():
        yield "forward", (*ahead, direction)


def next_action(task: Task) -> Sequence[str]:
    """The best next action of the walk."""
    return [task.reference_answer]
