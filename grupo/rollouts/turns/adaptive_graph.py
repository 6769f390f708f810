"""Adaptive graphs of thoughts: sub-questions in layers; a complex one opens a graph of its own."""

import asyncio
from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.numbers import NonNegativeInt, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Provides
from grupo.core.thought_graph import Plan, SubQuestion, Thought, parse_plan, thoughts_text
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.private_context import (
    answer_to_prompt,
    private_reply,
    task_text,
    with_task_text,
)

PLAN = (
    "{task}\n\n{thoughts}\n\nWhich at most {nodes} questions should be answered next? One short"
    " question on each line, after the numbers of the thoughts that it needs, as in [1, 2]. Reply"
    " done if nothing is missing."
)
JUDGE = "{task}\n\n{thoughts}\n\nIs this question simple or complex? Reply one word.\n{question}"
SOLVE = "{task}\n\n{thoughts}\n\nAnswer this question in one sentence.\n{question}"
ANSWER = "{task}\n\n{thoughts}\n\nNow answer the task itself."


@component
class AdaptiveGraph:
    """A turn in which the policy plans sub-questions in layers, answers them, then the task.

    A thought is a sub-question with its answer. A sub-question reads the earlier thoughts that its
    plan names. A sub-question that the policy calls complex is answered by a nested graph, at most
    `depth` levels deep. A task for which the policy plans no sub-question is answered as usual.

    Prompts that begin with {task} and {thoughts} share a prefix in the engine's prefix cache. The
    usage has these counts: `graph/thoughts`, `graph/nested` (nested graphs), `graph/unanswered`
    (thoughts without an answer), `graph/unknown_inputs` (named inputs that are no thoughts), and
    `graph/empty` (tasks without a thought).

    Args:
        layers: Largest number of layers of a graph.
        nodes: Largest number of sub-questions in a layer.
        depth: Levels of nested graphs; 0 nests none, and nothing is judged.
        thought_tokens: Largest number of tokens of a plan, a judgement or a thought's answer.
        plan: Prompt with {task}, {thoughts} and {nodes}; its reply has a sub-question on each line.
        judge: Prompt with {task}, {thoughts} and {question}; a reply that begins with "complex"
            opens a nested graph.
        solve: Prompt with {task}, {thoughts} and {question}; the task of a nested graph, too.
        answer: Prompt with {task} and {thoughts}, which the answer of the turn replies to.
        role: Role that replies to all prompts but `answer`; "" for the policy itself.
        inner: Generates the answer of the turn.

    Raises:
        ConfigError: A prompt lacks a placeholder, or has one without a value.
    """

    layers: PositiveInt = 3
    nodes: PositiveInt = 3
    depth: NonNegativeInt = 1
    thought_tokens: PositiveInt = 48
    plan: str = PLAN
    judge: str = JUDGE
    solve: str = SOLVE
    answer: str = ANSWER
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        known = ("task", "thoughts")
        check_form("AdaptiveGraph.plan", self.plan, (*known, "nodes"))
        check_form("AdaptiveGraph.judge", self.judge, (*known, "question"))
        check_form("AdaptiveGraph.solve", self.solve, (*known, "question"))
        check_form("AdaptiveGraph.answer", self.answer, known)

    @property
    def provides(self) -> Provides:
        """The role that thinks."""
        return Provides(roles=(self.role,) if self.role else ())

    @property
    def private_tokens(self) -> int:
        """Largest number of tokens of plans and thoughts in one prompt."""
        return (self.depth + 1) * self.layers * (self.nodes + 1) * self.thought_tokens

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        builder = _Builder(self, rollout, observation)
        task = task_text(observation)
        thoughts = await builder.graph(actor.fork("graph", turn), task, self.depth)
        answer_actor = actor.fork("answer", turn)
        if not thoughts:
            add_external_usage({"graph/empty": 1.0})
            return await self.inner(answer_actor, rollout, observation)
        values = {"task": task, "thoughts": thoughts_text(thoughts)}
        prompt = with_task_text(observation, fill(self.answer, values))
        return await answer_to_prompt(answer_actor, rollout, observation, prompt, self.inner)


class _Builder:
    """Builds the graphs of one turn.

    Args:
        strategy: Its prompts and limits.
        rollout: The rollout before the turn.
        observation: The observation of the turn; each prompt replaces its text.
    """

    def __init__(self, strategy: AdaptiveGraph, rollout: Rollout, observation: Observation) -> None:
        self.strategy = strategy
        self.rollout = rollout
        self.observation = observation

    async def graph(
        self, actor: Actor, task: str, depth: int, path: str = ""
    ) -> tuple[Thought, ...]:
        """The thoughts about a task, layer by layer.

        Args:
            actor: Generates the replies.
            task: The task, or the sub-question of a nested graph with its inputs.
            depth: Levels of graphs that may be nested in this one.
            path: Numbers of the thoughts that the graph is nested in, for labels.
        """
        thoughts: tuple[Thought, ...] = ()
        for layer in range(self.strategy.layers):
            plan = await self._plan(actor.fork("plan", layer), task, thoughts, f"plan {path}")
            if not plan.questions:
                break
            first = len(thoughts) + 1
            answers = (
                self._thought(actor.fork("thought", i), task, thoughts, q, depth, f"{path}{i}")
                for i, q in enumerate(plan.questions, first)
            )
            thoughts = (*thoughts, *await asyncio.gather(*answers))
        add_external_usage({"graph/thoughts": float(len(thoughts))})
        return thoughts

    async def _plan(
        self, actor: Actor, task: str, thoughts: tuple[Thought, ...], label: str
    ) -> Plan:
        """The sub-questions of the next layer."""
        nodes = str(self.strategy.nodes)
        values = {"task": task, "thoughts": thoughts_text(thoughts), "nodes": nodes}
        reply = await self._reply(actor, self.strategy.plan, values, label.strip())
        plan = parse_plan(reply, len(thoughts), self.strategy.nodes)
        if plan.unknown_inputs:
            add_external_usage({"graph/unknown_inputs": float(plan.unknown_inputs)})
        return plan

    async def _thought(
        self,
        actor: Actor,
        task: str,
        thoughts: tuple[Thought, ...],
        question: SubQuestion,
        depth: int,
        path: str,
    ) -> Thought:
        """The answer to a sub-question, by a nested graph if it is complex."""
        text = thoughts_text(thoughts, question.inputs)
        values = {"task": task, "thoughts": text, "question": question.text}
        form, nested = self.strategy.solve, ()
        if depth and await self._is_complex(actor.fork("judge"), values, path):
            add_external_usage({"graph/nested": 1.0})
            task = fill(form, values)
            nested = await self.graph(actor.fork("nested"), task, depth - 1, f"{path}.")
        if nested:
            form = self.strategy.answer
            values = {"task": task, "thoughts": thoughts_text(nested)}
        reply = await self._reply(actor.fork("solve"), form, values, f"thought {path}")
        if not reply.strip():
            add_external_usage({"graph/unanswered": 1.0})
        return Thought(question, " ".join(reply.split()), nested)

    async def _is_complex(self, actor: Actor, values: Mapping[str, str], path: str) -> bool:
        """Whether the reply to `judge` begins with complex."""
        reply = await self._reply(actor, self.strategy.judge, values, f"simple {path}?")
        return reply.strip().lower().startswith("complex")

    async def _reply(self, actor: Actor, form: str, values: Mapping[str, str], label: str) -> str:
        """The reply of the role to a form."""
        prompt = with_task_text(self.observation, fill(form, values))
        limited = actor.with_stop(max_new_tokens=self.strategy.thought_tokens)
        role = self.strategy.role
        return await private_reply(limited, self.rollout, prompt, role=role, label=label)


PAPER = Paper(
    title="Adaptive Graph of Thoughts: Test-Time Adaptive Reasoning Unifying Chain, Tree, and "
    "Graph Structures",
    use="Tasks with several hops, and a policy that can plan; compare with Vote first.",
    tags=("tree", "hints"),
    kind="evaluation",
    catalogue=("agot",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2502.05078, abstract; the catalogue's row"),
    deviations=(
        "The texts of the forms, and the limits of layers, nodes and depth, are our choice.",
        "A question whose plan names no inputs reads all earlier thoughts.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_adaptive_graph.py"
        "::test_a_complex_question_opens_one_graph_and_the_depth_ends_the_recursion",
    ),
)
