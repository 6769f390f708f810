"""Sixteen numbers to sort by a graph of thoughts: a solver that slips, and scripted policies.

The solver slips more often in longer lists, so that lists are better split; a slip that is merged
into a longer list stays there until it is corrected.
"""

import random
import re
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import pairwise
from typing import NamedTuple

from grupo.core.component import component
from grupo.core.types import Observation, Task
from grupo.envs.game_session import Opponent, VersusOpponent
from grupo.envs.thoughts import Sorting, ThoughtGraph, numerical
from grupo.envs.thoughts.sorting import BRACKETS, shown

NUMBERS = 16  # numbers to sort
CALLS = 6  # replies of the solver in a session
NODE = re.compile(
    r"(\d+)(?: = (\w+)((?: \d+)+))?: (\w+) of (\d+) items(?:, (\d+) errors)?(?:, (\d+) ref\w+)?"
)
GRAPH = ThoughtGraph(parts=2, max_nodes=8, max_calls=CALLS)
SORTING = Sorting()


@component
class SlippingSolver:
    """Sorts, merges and corrects lists of numbers, with slips: the opponent of the policy.

    A slip exchanges two neighbours. A list of n numbers is sorted with a slip at each of its n - 1
    neighbours with probability n / 80, a merge has one with probability 1/5, and a correction puts
    one number in its place with probability 4 / n.
    """

    def __call__(self, observation: Observation, rng: random.Random) -> str:
        prompt = str(observation)
        given = [list(SORTING.read(f"[{text}]")) for text in BRACKETS.findall(prompt)]
        if prompt.startswith("Sort"):
            numbers = sorted(given[0], key=numerical)
            slips = sum(rng.random() < len(numbers) / 80 for _ in numbers[1:])
        elif prompt.startswith("Merge"):
            numbers = list(merge(*given, key=numerical))
            slips = rng.random() < 0.2
        else:
            numbers, slips = given[1], 0
            if rng.random() < 4 / len(numbers):
                correct_one(numbers)
        for _ in range(slips):
            place = rng.randrange(len(numbers) - 1)
            numbers[place : place + 2] = reversed(numbers[place : place + 2])
        return shown(numbers)


def correct_one(numbers: list[str]) -> None:
    """Put the first number that is smaller than its left neighbour in its place."""
    for place, (left, right) in enumerate(pairwise(numbers), start=1):
        if numerical(right) < numerical(left):
            insort(numbers, numbers.pop(place), key=numerical)
            return


class Node(NamedTuple):
    """A line of the observation.

    Args:
        number: Number of the node.
        made_by: Name of the operation that made it; "" for the whole problem.
        sources: The nodes of that operation.
        kind: "problem" or "thought".
        size: Number of its items.
        errors: Errors of a thought.
        refinements: How often it was refined.
    """

    number: int
    made_by: str
    sources: tuple[int, ...]
    kind: str
    size: int
    errors: int
    refinements: int


def nodes_in(observation: Observation) -> list[Node]:
    """The nodes that an observation of the policy shows."""
    return [
        Node(
            int(number),
            made_by,
            tuple(map(int, sources.split())),
            kind,
            *(int(count or 0) for count in counts),
        )
        for number, made_by, sources, kind, *counts in NODE.findall(str(observation))
    ]


def fixed_schedule(nodes: Sequence[Node]) -> str:
    """Split, solve each part, refine each thought once, merge in pairs, and refine the whole list.

    With `CALLS` calls, the whole list is refined once.
    """
    return _next_operation(nodes, lambda node: not node.refinements and node.size < nodes[0].size)


def by_errors(nodes: Sequence[Node]) -> str:
    """The same, but every thought is refined before it is merged for as long as it has errors."""
    return _next_operation(nodes, lambda node: node.errors > 0)


class AtRandom:
    """A schedule that refines a thought with probability 1/2, again and again."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def __call__(self, nodes: Sequence[Node]) -> str:
        return _next_operation(nodes, lambda node: self.rng.random() < 0.5)


def _next_operation(nodes: Sequence[Node], is_refined: Callable[[Node], bool]) -> str:
    """The next operation of a schedule.

    Args:
        nodes: The graph.
        is_refined: Whether a thought that is not merged yet is refined now.
    """
    parts = [node.number for node in nodes if node.made_by == "split"]
    solved = {source for node in nodes if node.made_by == "solve" for source in node.sources}
    merged = {source for node in nodes if node.made_by == "merge" for source in node.sources}
    if not parts:
        return "split 1"
    for number in parts:
        if number not in solved:
            return f"solve {number}"
    thoughts = [x for x in nodes if x.kind == "thought" and x.number not in merged]
    thoughts.sort(key=lambda node: (node.size, node.number))
    refined = next(filter(is_refined, thoughts), thoughts[0] if len(thoughts) == 1 else None)
    if refined:
        return f"refine {refined.number}"
    return "merge " + " ".join(str(node.number) for node in thoughts[:2])


def any_operation(nodes: Sequence[Node], rng: random.Random) -> str:
    """A random operation on nodes of the right kind; it need not be legal."""
    thoughts = [node.number for node in nodes if node.kind == "thought"]
    problems = [node.number for node in nodes if node.kind == "problem"]
    single = {"split": problems, "solve": problems, "refine": thoughts}
    operations = [f"{name} {number}" for name, numbers in single.items() for number in numbers]
    return rng.choice([*operations, *(f"merge {a} {b}" for a, b in pairwise(thoughts))])


def lists(first: int, count: int, length: int = NUMBERS) -> Iterator[Task]:
    """Tasks: lists of numbers below 100."""
    for number in range(first, first + count):
        rng = random.Random(f"list {number}")
        items = [str(rng.randrange(100)) for _ in range(length)]
        yield Task(f"list {number}", "Sort the list.", columns={"items": items})


class Session(NamedTuple):
    """A session of a scripted policy.

    Args:
        pages: The observations, with the operation that answered each.
        reward: 1 if the list was sorted.
        calls: Replies of the solver.
        end: The last observation.
    """

    pages: list[tuple[str, str]]
    reward: float
    calls: float
    end: str


def play(
    task: Task,
    policy: Callable[[Sequence[Node]], str],
    *,
    noise: float = 0.0,
    max_turns: int = 14,
    graph: ThoughtGraph = GRAPH,
    solver: Opponent = SlippingSolver(),
) -> Session:
    """A session of a scripted policy.

    Args:
        task: The list.
        policy: Names an operation.
        noise: Probability of a random operation instead.
        max_turns: Largest number of operations.
        graph: The environment.
        solver: Carries the operations out.
    """
    game = VersusOpponent(graph, solver)()
    rng = random.Random(f"noise {task.key}")
    result = game.reset(task)
    pages, reward, calls = [], 0.0, 0.0
    while not result.done and len(pages) < max_turns:
        nodes = nodes_in(result.observation)
        operation = any_operation(nodes, rng) if rng.random() < noise else policy(nodes)
        pages.append((str(result.observation), operation))
        result = game.step(operation)
        reward += result.reward
        calls += result.counts.get("solver_calls", 0.0)
    return Session(pages, reward, calls, str(result.observation))
