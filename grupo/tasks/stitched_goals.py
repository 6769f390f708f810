"""Goals of recorded walks, which may lie on another walk that meets the first one."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any

from annotated_types import Interval

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource, task_key
from grupo.tasks.in_memory import as_task_source
from grupo.util.errors import ConfigError
from grupo.util.limits import GENERATED_TASKS
from grupo.util.rng import make_rng


@dataclass(frozen=True)
class Walk:
    """A recorded walk.

    Args:
        states: The states, one more than actions.
        actions: The action in each state but the last.
    """

    states: Sequence[Any]
    actions: Sequence[Any]


def same_state(state: Any) -> Hashable:
    """Each state is a cluster of its own.

    >>> same_state([1, 2]) == same_state([1, 2])
    True
    """
    return tuple(state) if isinstance(state, list) else state


@component
class StitchedGoals:
    """Demonstrations (state, goal) -> action of recorded walks, some with goals of other walks.

    A step of a walk gets a later state w of the walk as its goal. With probability `stitch_prob`,
    where another walk has a state in the cluster of w, the goal is a later state of that walk
    instead. Temporal data augmentation of Ghugare et al. (arXiv:2401.11237). The prompt names
    state and goal, and the column `solution` is the action.

    Args:
        source: Walks, in columns of tasks or of a table in memory.
        size: Number of demonstrations.
        stitch_prob: Probability of a goal on another walk; 0 is plain supervised learning.
        cluster: The cluster of a state.
        states: Column with the list of states.
        actions: Column with the list of actions, one fewer.
        prompt: Prompt with the fields {state} and {goal}.
        seed: Seed of the draws.

    Raises:
        ConfigError: When loaded: a walk has no action, or not one more state than actions.
    """

    source: TaskSource
    size: Annotated[int, Interval(ge=1, le=GENERATED_TASKS.maximum)] = 10_000
    stitch_prob: Annotated[float, Interval(ge=0, le=1)] = 0.5
    cluster: Callable[[Any], Hashable] = same_state
    states: str = "states"
    actions: str = "actions"
    prompt: str = "From {state} to {goal}:"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_task_source(self.source, "source"))

    def load(self) -> Sequence[Task]:
        walks = [self._walk(task, i) for i, task in enumerate(self.source.load())]
        steps = [(i, t) for i, walk in enumerate(walks) for t in range(len(walk.actions))]
        visits = self._visits(walks)
        return LazyTasks(self.size, lambda n: self._task(walks, steps, visits, n))

    def _task(
        self,
        walks: Sequence[Walk],
        steps: Sequence[tuple[int, int]],
        visits: Mapping[Hashable, Sequence[tuple[int, int]]],
        number: int,
    ) -> Task:
        rng = make_rng(self.seed, "stitch", number)
        i, t = rng.choice(steps)
        state, action = walks[i].states[t], walks[i].actions[t]
        goal = self._goal(walks, visits, (i, t), rng)
        columns = {"solution": str(action), "state": state, "goal": goal}
        prompt = self.prompt.format(state=state, goal=goal)
        return Task(task_key(prompt), prompt, columns=columns)

    def _goal(
        self,
        walks: Sequence[Walk],
        visits: Mapping[Hashable, Sequence[tuple[int, int]]],
        step: tuple[int, int],
        rng: Random,
    ) -> Any:
        i, t = step
        waypoint = rng.choice(walks[i].states[t + 1 :])
        others = [visit for visit in visits.get(self.cluster(waypoint), ()) if visit[0] != i]
        if not others or rng.random() >= self.stitch_prob:
            return waypoint
        other, place = rng.choice(others)
        return rng.choice(walks[other].states[place + 1 :])

    def _visits(self, walks: Sequence[Walk]) -> Mapping[Hashable, Sequence[tuple[int, int]]]:
        """Walk and place of each state that has a later one, by cluster."""
        visits: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
        for i, place, state in _states_with_a_successor(walks):
            visits[self.cluster(state)].append((i, place))
        return visits

    def _walk(self, task: Task, number: int) -> Walk:
        where = task.location or f"walk {number + 1}"
        states, actions = (self._list_of(task, name, where) for name in (self.states, self.actions))
        if not actions or len(states) != len(actions) + 1:
            raise ConfigError(
                f"source: {where} has {len(states)} {self.states} and {len(actions)}"
                f" {self.actions}. Allowed: an action or more, and one more state."
            )
        return Walk(states, actions)

    def _list_of(self, task: Task, name: str, where: str) -> Sequence[Any]:
        value = task.columns.get(name)
        if not isinstance(value, list | tuple):
            raise ConfigError(f"source: {where}: {name}: {value!r}. Allowed: a list.")
        return value


def _states_with_a_successor(walks: Sequence[Walk]) -> Iterator[tuple[int, int, Any]]:
    for i, walk in enumerate(walks):
        for place, state in enumerate(walk.states[:-1]):
            yield i, place, state


PAPER = Paper(
    title="Closing the Gap between TD Learning and Supervised Learning -- A Generalisation Point "
    "of View",
    use="Recorded walks visit starts and goals that never occur in one walk.",
    tags=("sft", "off-policy", "agents"),
    kind="environment",
    catalogue=("td-vs-sl-stitching",),
    checked=("golden", "run"),
    source=Source("third_party", "a review of arXiv:2401.11237 with its figure 2"),
    deviations=(
        "States are clustered by a function, by default equality, instead of k-means.",
        "The waypoint is a later state of the walk, drawn uniformly, and not a discounted one.",
    ),
    shown=(
        "tests/tasks/test_stitched_goals.py::test_goals_of_other_walks_are_reached_when_stitched",
    ),
)
