"""ARIES: a policy steers a graph of thoughts. Gimenes et al., 2025, arXiv:2502.21208."""

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from annotated_types import Ge

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.envs.game_env import StepResult
from grupo.envs.thoughts.graph import Graph, IllegalOperationError
from grupo.envs.thoughts.sorting import Sorting, ThoughtProblem

POLICY, SOLVER = 0, 1  # the seats
OPERATIONS = "split N, solve N, refine N, merge N N ..., drop N"
OF_ONE_NODE = ("split", "solve", "refine", "drop")
OPERATION = re.compile(r"(\w+)((?:[\s,]+\d{1,6})+)\.?")
TwoOrMore = Annotated[int, Ge(2)]


@component
class ThoughtGraph:
    """A game for two: the policy (seat 0) names an operation, the solver (seat 1) carries it out.

    In a `MultiplayerEnv` the solver is its `opponent`; with the sampler `SelfPlay`, it is the
    policy of a role. The policy reads all nodes of the graph and replies with an operation:

    * `split N`: problem N is divided into `parts` problems of neighbouring items.
    * `solve N`: the solver answers problem N, which makes a thought.
    * `refine N`: the solver corrects thought N, whose new answer is kept unless it has more errors.
    * `merge N M ...`: the solver joins thoughts without common items into one.
    * `drop N`: node N is removed; what was made from it stays.

    The session ends when a thought about all items has no errors, with a reward of 1 for both, or
    after `max_calls` replies of the solver, with 0. An operation that is not legal changes nothing:
    the policy reads why, and the graph again. Reward terms: `solver_calls`, and `illegal`, the
    number of operations that were not legal.

    Args:
        problem: The problem, with the solver's prompts and the count of errors.
        parts: Number of problems that a split makes; fewer of a problem with fewer items.
        max_nodes: Largest number of nodes of a graph. An operation that would exceed it is not
            legal.
        max_calls: Largest number of replies of the solver in a session.
    """

    problem: ThoughtProblem = Sorting()
    parts: TwoOrMore = 4
    max_nodes: TwoOrMore = 32
    max_calls: PositiveInt = 16

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task without items."""
        for task in tasks:
            self.problem.items(task)

    def __call__(self) -> "_Session":
        return _Session(self)


class _SolverCall(NamedTuple):
    """A request to the solver.

    Args:
        prompt: The observation of the solver.
        made_by: The operation.
        items: Indices of the items of its answer.
        refined: Number of the thought that the answer corrects; 0 if it makes a new one.
    """

    prompt: str
    made_by: str
    items: tuple[int, ...]
    refined: int = 0


class _Session:
    """A session of a `ThoughtGraph`."""

    def __init__(self, config: ThoughtGraph) -> None:
        self.config = config
        self.calls = 0
        self.call: _SolverCall | None = None

    def reset(self, task: Task) -> StepResult:
        self.prompt = task.prompt.strip() if isinstance(task.prompt, str) else ""
        self.items = self.config.problem.items(task)
        self.graph = Graph.of_items(len(self.items), self.config.max_nodes)
        return StepResult(self._graph_text(), next_player=POLICY)

    def step(self, text: str) -> StepResult:
        return self._take_reply(self.call, text) if self.call else self._operate(text)

    def _graph_text(self) -> str:
        """The observation of the policy."""
        left = f"{self.config.max_calls - self.calls} solver calls are left."
        lines = [self.prompt, *map(str, self.graph.nodes), f"{left} Operations: {OPERATIONS}."]
        return "".join(f"{line}\n" for line in lines if line)

    def _operate(self, text: str) -> StepResult:
        try:
            self.call = self._apply(*parsed(text))
        except IllegalOperationError as error:
            reason = f"{text.strip()[:40]!r} is not possible: {error}.\n"
            observation = reason + self._graph_text()
            return StepResult(observation, counts={"illegal": 1.0}, next_player=POLICY)
        if not self.call:
            return StepResult(self._graph_text(), next_player=POLICY)
        return StepResult(self.call.prompt, counts={"solver_calls": 1.0}, next_player=SOLVER)

    def _apply(self, name: str, numbers: list[int]) -> _SolverCall | None:
        """Carry out an operation that needs no solver, or return the request to the solver."""
        graph, problem = self.graph, self.config.problem
        made_by = " ".join([name, *map(str, numbers)])
        match name:
            case "split":
                self.graph = graph.split(numbers[0], self.config.parts)
                return None
            case "drop":
                self.graph = graph.dropped(numbers[0])
                return None
            case "solve":
                items = graph.problem(numbers[0]).items
                prompt = problem.solve_prompt(self._texts(items))
            case "merge":
                parts = graph.parts(numbers)
                items = tuple(sorted(item for part in parts for item in part.items))
                prompt = problem.merge_prompt([part.answer or () for part in parts])
            case _:
                old = graph.thought(numbers[0])
                texts = self._texts(old.items)
                prompt = problem.refine_prompt(texts, old.answer or (), old.errors)
                return _SolverCall(prompt, made_by, old.items, old.number)
        graph.check_room()
        return _SolverCall(prompt, made_by, items)

    def _take_reply(self, call: _SolverCall, text: str) -> StepResult:
        """Add the solver's answer to the graph."""
        problem = self.config.problem
        answer = problem.read(text)
        errors = problem.errors(self._texts(call.items), answer)
        if call.refined:
            self.graph = self.graph.refined(call.refined, answer, errors)
        else:
            self.graph = self.graph.with_node(call.made_by, call.items, answer, errors)
        self.calls += 1
        self.call = None
        is_solved = self.graph.solution is not None
        return StepResult(
            self._graph_text(),
            done=is_solved or self.calls >= self.config.max_calls,
            next_player=POLICY,
            player_rewards=(float(is_solved),) * 2,
        )

    def _texts(self, items: tuple[int, ...]) -> list[str]:
        return [self.items[i] for i in items]


def parsed(text: str) -> tuple[str, list[int]]:
    """The name of an operation and its nodes.

    Raises:
        IllegalOperationError: The text is no operation, or has another number of nodes.

    >>> parsed("Merge 6, 7.")
    ('merge', [6, 7])
    """
    match = OPERATION.fullmatch(text.strip())
    name = match[1].lower() if match else ""
    if not match or name not in (*OF_ONE_NODE, "merge"):
        raise IllegalOperationError(f"the operations are {OPERATIONS}")
    numbers = [int(number) for number in re.findall(r"\d+", match[2])]
    if name in OF_ONE_NODE and len(numbers) > 1:
        raise IllegalOperationError(f"{name} takes one node")
    return name, numbers


PAPER = Paper(
    title="ARIES: Autonomous Reasoning with LLMs on Interactive Thought Graph Environments",
    use="A problem has parts, and a policy should learn when to split, solve, refine and merge.",
    tags=("agents",),
    kind="environment",
    catalogue=("aries-got",),
    checked=("golden", "run"),
    source=Source("abstract", "arXiv:2502.21208, abstract; the catalogue's row"),
    missing=(
        "HumanEval and set intersection; other problems implement ThoughtProblem.",
        "Pretrained models of a useful size: docs/agents.md has a small one as the solver.",
    ),
    deviations=(
        "A problem is split by code into neighbouring items, and thoughts are scored by code.",
        "The policy reads the nodes, the operations that made them and their errors, no answers.",
        "The policy is trained by GRPO in the recipe; the paper trains nothing.",
        "The ensemble of policy samples is FreshContext(Vote(n)), not a part of this file.",
    ),
    shown=(
        "tests/envs/test_thought_graph.py::test_a_scripted_policy_sorts_sixteen_numbers",
        "docs/agents.md#graphs-of-thoughts",
    ),
)
