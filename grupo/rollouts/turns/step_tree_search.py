"""Monte Carlo tree search over the steps of an answer. CoAT, arXiv:2502.02390."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor
from grupo.core.paper import Paper, Source
from grupo.core.prompt_text import prompt_as_text
from grupo.core.ranges import NonEmptyString, NonNegativeFloat, PositiveInt
from grupo.core.requires import Provides
from grupo.core.search_tree import UCT, Node, Path, back_up_mean, best_path, expand, select
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.associations import Associate, Association, no_association
from grupo.rollouts.turns.best_of import mark_not_sampled
from grupo.rollouts.turns.choices import text_since
from grupo.rollouts.turns.forced_start import append_forced
from grupo.rollouts.turns.step_scores import StepScore, geometric_mean_probability


@dataclass(frozen=True)
class _PartialAnswer:
    """An answer up to some step: the state of a node. Answers with the same items are equal.

    Args:
        items: Items of the answer's steps and of the texts that were added to them.
        rollout: The rollout, which ends with the answer.
        is_open: Whether the policy has not ended the answer yet.
        has_room: Whether the answer has room for a further step.
        quality: Quality of the text that was added to the last step.
    """

    items: tuple[Any, ...] = ()
    rollout: Rollout = field(default=Rollout(), compare=False)
    is_open: bool = field(default=True, compare=False)
    has_room: bool = field(default=True, compare=False)
    quality: float = field(default=0.0, compare=False)


@component
class StepTreeSearch:
    """Monte Carlo tree search over the steps of an answer; texts may be added after steps.

    An iteration has four parts. It selects a leaf by UCT. It samples `branches` next steps after
    the leaf. It adds to each step that ends with `step_end` the text that `associate` finds. It
    computes the value F + beta A of each step and backs the values up. F is the score of the
    answer so far, and A is the quality of the added text.

    The search returns the finished answer of highest F + beta A. If no answer is finished, the
    policy continues the best path to its end. The answer is marked as not `sampled`, because it was
    chosen. Added texts are forced: they are neither generated nor trained on.

    The usage has these counts:

    - `tree/expansions`: expansions;
    - `tree/alike`: expansions whose sampled steps were all identical;
    - `tree/associated`: the added texts;
    - `tree/no_room`: steps for which the context had no room;
    - `tree/unfinished`: searches that a limit ended before an answer was finished.

    Args:
        iterations: Largest number of expansions.
        branches: Number of steps that are sampled from a node; identical steps become one child.
        max_steps: Largest number of steps of an answer in the tree.
        max_step_tokens: Largest number of tokens of a step.
        step_end: Text that ends a step.
        score: Computes F, the score of the steps so far.
        associate: Finds the text that is added to a step.
        beta: Weight of the quality A of an added text.
        priority: Priority of a child of a node; the selection follows the child of highest
            priority.
    """

    iterations: PositiveInt = 8
    branches: PositiveInt = 3
    max_steps: PositiveInt = 6
    max_step_tokens: PositiveInt = 64
    step_end: NonEmptyString = "\n"
    score: StepScore = geometric_mean_probability
    associate: Associate = no_association
    beta: NonNegativeFloat = 0.1
    priority: UCT = UCT()

    provides = Provides(given=True)

    @property
    def max_answer_tokens(self) -> int:
        """Largest number of tokens that the steps of an answer in the tree may have."""
        return self.max_steps * self.max_step_tokens

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        root = Node(_PartialAnswer(rollout=rollout))
        finished: list[Node[_PartialAnswer]] = []
        for number in range(self.iterations):
            path = select(root, self.priority)
            if path[-1].is_terminal:  # one more visit lowers its priority below its siblings'
                back_up_mean(path, path[-1].q)
                continue
            forked = actor.fork("expansion", len(rollout.turns), number)
            await self._expand(forked, rollout, observation, path)
            for child in path[-1].children:
                back_up_mean([*path, child], await self._value(actor, rollout, child.state))
            finished += [child for child in path[-1].children if not child.state.is_open]
        if finished:
            answer = max(finished, key=lambda node: node.q).state.rollout
        else:
            add_external_usage({"tree/unfinished": 1.0})
            best = best_path(root)[-1].state.rollout
            answer = best.append_turn("", await actor.fork("rest", len(rollout.turns))(best, ""))
        return mark_not_sampled(rollout, answer)

    async def _expand(
        self, actor: Actor, start: Rollout, observation: Observation, path: Path[_PartialAnswer]
    ) -> None:
        """Add children to the leaf of a path, each with the text that is added to its step."""
        leaf = path[-1]
        step_actor = actor.with_stop(self.step_end, max_new_tokens=self.max_step_tokens)
        shown_observation = observation if len(path) == 1 else ""  # "" continues the answer
        steps = await asyncio.gather(
            *(
                step_actor.fork("step", i)(leaf.state.rollout, shown_observation)
                for i in range(self.branches)
            )
        )
        children = [
            await self._child(actor, start, leaf.state.rollout.append_turn(shown_observation, step))
            for step in {step.items: step for step in steps}.values()
        ]
        is_last = len(path) >= self.max_steps
        expand(leaf, [Node(x, is_terminal=is_last or not x.has_room) for x in children])
        is_alike = len(children) == 1 and self.branches > 1
        add_external_usage({"tree/expansions": 1.0, "tree/alike": float(is_alike)})

    async def _child(self, actor: Actor, start: Rollout, rollout: Rollout) -> _PartialAnswer:
        """The answer after a step, with the text that is added to the step."""
        step = rollout.last_response
        ends_step = step.finish_reason == "stop" and self.step_end in step.text
        is_open = ends_step or step.finish_reason == "length"
        association = Association()
        if ends_step:
            observation = rollout.turns[len(start.turns)][0]
            known_text = prompt_as_text(observation) + text_since(start, rollout)
            association = self.associate(step.text.strip(), known_text)
        if association.text:
            rollout = await append_forced(actor, rollout, "", association.text)
        counts = {"tree/associated": bool(association.text), "tree/no_room": not step.items}
        add_external_usage({name: float(count) for name, count in counts.items()})
        new_responses = [response for _, response in rollout.turns[len(start.turns) :]]
        items = tuple(item for response in new_responses for item in response.items)
        return _PartialAnswer(
            items, rollout, is_open, is_open and bool(step.items), association.quality
        )

    async def _value(self, actor: Actor, start: Rollout, answer: _PartialAnswer) -> float:
        """The value of an answer, F + beta A."""
        return await self.score(actor, start, answer.rollout) + self.beta * answer.quality


PAPER = Paper(
    title="CoAT: Chain-of-Associated-Thoughts Framework for Enhancing Large Language Models"
    " Reasoning",
    use="Answers have steps, and facts that a step needs can be looked up.",
    tags=("tree", "hints"),
    kind="evaluation",
    catalogue=("coat",),
    checked=("golden", "run"),
    source=Source(
        "abstract",
        "arXiv:2502.02390, abstract, and a summary with the formula of the associative memory;"
        " the value F_g + beta F_a is the catalogue's, from memory. No released code was found",
    ),
    missing=(
        "Associations that the language model writes itself.",
        "Scores by a language model: F is the mean probability of the tokens (geometric), or a"
        " head.",
        "HotpotQA and MuSiQue.",
    ),
    deviations=(
        "beta is 0.1, and the quality of an association is the share of the step's words in it.",
        "The answer is the finished one of highest value; the paper follows the best path.",
    ),
    shown=(
        "tests/rollouts/turns/test_step_tree_search.py"
        "::test_a_fact_that_is_looked_up_is_found_and_never_without_association",
    ),
)
