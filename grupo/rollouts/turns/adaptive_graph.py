"""Adaptive graphs of thoughts: sub-questions in layers; a complex one has a nested graph."""

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
COMPLEXITY = (
    "{task}\n\n{thoughts}\n\nIs this question simple or complex? Reply one word.\n{question}"
)
QUESTION = "{task}\n\n{thoughts}\n\nAnswer this question in one sentence.\n{question}"
ANSWER = "{task}\n\n{thoughts}\n\nNow answer the task itself."


@component
class AdaptiveGraph:
    """A turn in which the policy plans sub-questions in layers, answers them, then the task.

    A thought is a sub-question with its answer. A sub-question reads the earlier thoughts that its
    plan names. A sub-question that the policy calls complex is answered by a nested graph, at most
    `depth` levels deep. A task for which the policy plans no sub-question is answered as usual.

    All default prompts begin with {task} and {thoughts}, so that the engine's prefix cache serves
    the task to each of them. The usage has these counts:

    - `graph/thoughts`: thoughts;
    - `graph/nested`: nested graphs;
    - `graph/unanswered`: thoughts without an answer;
    - `graph/unknown_inputs`: numbers in a plan that are not the number of a thought;
    - `graph/empty`: tasks for which no sub-question was planned.

    Args:
        layers: Largest number of layers of a graph.
        nodes: Largest number of sub-questions in a layer.
        depth: Levels of nested graphs. With 0, no graph is nested, and the policy is not asked
            whether a sub-question is complex.
        thought_tokens: Largest number of tokens of a reply to one of the first three prompts.
        plan_prompt: Prompt with {task}, {thoughts} and {nodes}. Its reply has a sub-question on
            each line.
        complexity_prompt: Prompt with {task}, {thoughts} and {question}. If its reply begins with
            "complex", a nested graph answers the question.
        question_prompt: Prompt with {task}, {thoughts} and {question}. Its reply is the answer to
            the question. In a nested graph, this prompt is the task.
        answer_prompt: Prompt with {task} and {thoughts}. Its reply is the answer of the turn.
        role: Role that replies to the first three prompts; "" for the policy itself.
        inner: Generates the reply to `answer_prompt`.

    Raises:
        ConfigError: A prompt lacks a placeholder, or has one without a value.
    """

    layers: PositiveInt = 3
    nodes: PositiveInt = 3
    depth: NonNegativeInt = 1
    thought_tokens: PositiveInt = 48
    plan_prompt: str = PLAN
    complexity_prompt: str = COMPLEXITY
    question_prompt: str = QUESTION
    answer_prompt: str = ANSWER
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        known = ("task", "thoughts")
        check_form("AdaptiveGraph.plan_prompt", self.plan_prompt, (*known, "nodes"))
        check_form("AdaptiveGraph.complexity_prompt", self.complexity_prompt, (*known, "question"))
        check_form("AdaptiveGraph.question_prompt", self.question_prompt, (*known, "question"))
        check_form("AdaptiveGraph.answer_prompt", self.answer_prompt, known)

    @property
    def provides(self) -> Provides:
        """The role that thinks."""
        return Provides(roles=(self.role,) if self.role else ())

    @property
    def thought_tokens_in_prompt(self) -> int:
        """Largest number of generated tokens in one prompt: those of plans and thoughts."""
        return (self.depth + 1) * self.layers * (self.nodes + 1) * self.thought_tokens

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        builder = _GraphBuilder(self, rollout, observation)
        task = task_text(observation)
        thoughts = await builder.build(actor.fork("graph", turn), task, self.depth)
        answer_actor = actor.fork("answer", turn)
        if not thoughts:
            add_external_usage({"graph/empty": 1.0})
            return await self.inner(answer_actor, rollout, observation)
        values = {"task": task, "thoughts": thoughts_text(thoughts)}
        prompt = with_task_text(observation, fill(self.answer_prompt, values))
        return await answer_to_prompt(answer_actor, rollout, observation, prompt, self.inner)


class _GraphBuilder:
    """Builds the graphs of one turn.

    Args:
        strategy: The strategy, with prompts and limits.
        rollout: The rollout before the turn.
        observation: The observation of the turn; each prompt replaces its text.
    """

    def __init__(self, strategy: AdaptiveGraph, rollout: Rollout, observation: Observation) -> None:
        self.strategy = strategy
        self.rollout = rollout
        self.observation = observation

    async def build(
        self, actor: Actor, task: str, depth: int, label_prefix: str = ""
    ) -> tuple[Thought, ...]:
        """Build a graph for a task, layer by layer, and return its thoughts.

        Args:
            actor: Generates the replies.
            task: The task, or the sub-question of a nested graph with its inputs.
            depth: Levels of graphs that may be nested in this one.
            label_prefix: Number of the thought that the graph answers, such as "2."; "" for the
                graph of the task.
        """
        thoughts: tuple[Thought, ...] = ()
        for layer in range(self.strategy.layers):
            plan = await self._plan(
                actor.fork("plan", layer), task, thoughts, f"plan {label_prefix}"
            )
            if not plan.questions:
                break
            first = len(thoughts) + 1
            layer_thoughts = (
                self._think(
                    actor.fork("thought", i), task, thoughts, q, depth, f"{label_prefix}{i}"
                )
                for i, q in enumerate(plan.questions, first)
            )
            thoughts = (*thoughts, *await asyncio.gather(*layer_thoughts))
        add_external_usage({"graph/thoughts": float(len(thoughts))})
        return thoughts

    async def _plan(
        self, actor: Actor, task: str, thoughts: tuple[Thought, ...], label: str
    ) -> Plan:
        """The sub-questions of the next layer."""
        nodes = str(self.strategy.nodes)
        values = {"task": task, "thoughts": thoughts_text(thoughts), "nodes": nodes}
        reply = await self._reply(actor, self.strategy.plan_prompt, values, label.strip())
        plan = parse_plan(reply, len(thoughts), self.strategy.nodes)
        if plan.unknown_inputs:
            add_external_usage({"graph/unknown_inputs": float(plan.unknown_inputs)})
        return plan

    async def _think(
        self,
        actor: Actor,
        task: str,
        thoughts: tuple[Thought, ...],
        question: SubQuestion,
        depth: int,
        number: str,
    ) -> Thought:
        """Answer a sub-question, with a nested graph if the question is complex.

        Args:
            actor: Generates the replies.
            task: The task of the graph.
            thoughts: The thoughts of earlier layers.
            question: The sub-question.
            depth: Levels of graphs that may be nested below the thought.
            number: The thought's number for labels, such as "2.1": thought 1 in the graph of 2.
        """
        text = thoughts_text(thoughts, question.inputs)
        values = {"task": task, "thoughts": text, "question": question.text}
        prompt, nested = self.strategy.question_prompt, ()
        if depth and await self._is_complex(actor.fork("judge"), values, number):
            add_external_usage({"graph/nested": 1.0})
            task = fill(prompt, values)
            nested = await self.build(actor.fork("nested"), task, depth - 1, f"{number}.")
        if nested:
            prompt = self.strategy.answer_prompt
            values = {"task": task, "thoughts": thoughts_text(nested)}
        reply = await self._reply(actor.fork("solve"), prompt, values, f"thought {number}")
        if not reply.strip():
            add_external_usage({"graph/unanswered": 1.0})
        return Thought(question, " ".join(reply.split()), nested)

    async def _is_complex(self, actor: Actor, values: Mapping[str, str], number: str) -> bool:
        """Whether the reply to `complexity_prompt` begins with "complex"."""
        reply = await self._reply(
            actor, self.strategy.complexity_prompt, values, f"simple {number}?"
        )
        return reply.strip().lower().startswith("complex")

    async def _reply(self, actor: Actor, prompt: str, values: Mapping[str, str], label: str) -> str:
        """The reply of the role to a prompt whose placeholders have the values."""
        observation = with_task_text(self.observation, fill(prompt, values))
        limited = actor.with_stop(max_new_tokens=self.strategy.thought_tokens)
        role = self.strategy.role
        return await private_reply(limited, self.rollout, observation, role=role, label=label)


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
        "The texts of the prompts, and the limits of layers, nodes and depth, are our choice.",
        "A question whose plan names no inputs reads all earlier thoughts.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_adaptive_graph.py"
        "::test_a_complex_question_opens_one_graph_and_the_depth_ends_the_recursion",
    ),
)
