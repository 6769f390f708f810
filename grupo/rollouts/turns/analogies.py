"""Analogies: the policy solves similar problems, reads their answers and answers once more."""

import asyncio
from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn
from grupo.core.requires import Provides
from grupo.core.thought_graph import listed_lines
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.best_of import mark_not_sampled
from grupo.rollouts.turns.choices import CandidateChoice, text_since
from grupo.rollouts.turns.pairwise_comparison import PairwiseComparison
from grupo.rollouts.turns.private_context import (
    answer_to_prompt,
    private_reply,
    task_text,
    with_task_text,
)

PROPOSE = "{task}\n\nWrite {count} problems that are similar to this one, one on each line."
MERGE = (
    "{task}\n\nAn answer: {answer}\n\nSimilar problems with their answers:\n{analogies}\n\nAnswer"
    " again with what they show."
)


@component
class Analogies:
    """A turn that returns one of two answers; the policy reads solved problems before the second.

    The first answer is an answer to the observation. The policy then proposes problems that are
    similar to the task, and answers each in a private context. The second answer is generated after
    these problems and answers. `choice` returns one of the two answers.

    With a `depth` above 1, the answer to a similar problem is amended in the same way, by problems
    that are similar to this one. The usage `analogies/solved` counts solved problems. The usage
    `analogies/none` counts turns without a similar problem, which return the first answer.

    Args:
        count: Largest number of problems that are proposed as similar to one problem.
        depth: Levels of similar problems.
        thought_tokens: Largest number of tokens of a list of problems, or of an answer to one.
        propose_prompt: Prompt with {task} and {count}; its reply has a problem on each line.
        merge_prompt: Prompt with {task}, {answer} and {analogies}; its reply is the second answer.
        choice: Chooses between the first and the second answer.
        role: Role that proposes and answers similar problems; "" for the policy itself.
        inner: Generates both answers.

    Raises:
        ConfigError: A prompt lacks a placeholder, or has one without a value.
    """

    count: PositiveInt = 2
    depth: PositiveInt = 1
    thought_tokens: PositiveInt = 64
    propose_prompt: str = PROPOSE
    merge_prompt: str = MERGE
    choice: CandidateChoice = PairwiseComparison()
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("Analogies.propose_prompt", self.propose_prompt, ("task", "count"))
        check_form("Analogies.merge_prompt", self.merge_prompt, ("task", "answer", "analogies"))

    @property
    def provides(self) -> Provides:
        """The role that proposes; the answer is chosen and therefore no sample of the policy."""
        return Provides(given=True, roles=(self.role,) if self.role else ())

    @property
    def thought_tokens_in_prompt(self) -> int:
        """Largest number of generated tokens in one prompt.

        These are `count` similar problems with their answers in one line each, a problem that they
        amend, and its answer.
        """
        return (self.count + 3) * self.thought_tokens

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        task = task_text(observation)
        analogy_actor = actor.fork("analogies", turn)
        first, analogies = await asyncio.gather(
            self.inner(actor.fork("answer", turn), rollout, observation),
            self._analogies(analogy_actor, rollout, observation, task, self.depth),
        )
        if not analogies:
            add_external_usage({"analogies/none": 1.0})
            return mark_not_sampled(rollout, first)
        values = {"task": task, "answer": text_since(rollout, first), "analogies": analogies}
        prompt = with_task_text(observation, fill(self.merge_prompt, values))
        merge_actor = actor.fork("merge", turn)
        second = await answer_to_prompt(merge_actor, rollout, observation, prompt, self.inner)
        answers = (first, second)
        index = await self.choice(actor, rollout, answers)
        for i, answer in enumerate(answers):
            label = f"answer {i + 1}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, answer))
        return mark_not_sampled(rollout, answers[index])

    async def _analogies(
        self, actor: Actor, rollout: Rollout, observation: Observation, problem: str, depth: int
    ) -> str:
        """Problems similar to `problem`, each on a line with its answer; "" if there are none."""

        async def reply(name: str, prompt_form: str, values: Mapping[str, str]) -> str:
            prompt = with_task_text(observation, fill(prompt_form, values))
            limited = actor.fork(name).with_stop(max_new_tokens=self.thought_tokens)
            return await private_reply(limited, rollout, prompt, role=self.role, label=name)

        async def solve(number: int, similar: str) -> str:
            values = {"task": similar}
            values["answer"] = await reply(f"solve {number}", "{task}", values)
            if depth > 1:
                nested = actor.fork("nested", number)
                values["analogies"] = await self._analogies(
                    nested, rollout, observation, similar, depth - 1
                )
            if values.get("analogies"):
                values["answer"] = await reply(f"amend {number}", self.merge_prompt, values)
            return f"{similar} {' '.join(values['answer'].split())}"

        values = {"task": problem, "count": str(self.count)}
        proposed = listed_lines(await reply("propose", self.propose_prompt, values))
        similar_problems = [line for line in proposed if line != problem.strip()][: self.count]
        add_external_usage({"analogies/solved": float(len(similar_problems))})
        return "\n".join(
            await asyncio.gather(*(solve(i, x) for i, x in enumerate(similar_problems, 1)))
        )


PAPER = Paper(
    title="Thought Propagation: An Analogical Approach to Complex Reasoning with Large Language "
    "Models",
    use="Problems of which the policy can propose and solve similar ones; compare with Vote first.",
    tags=("hints", "exploration"),
    kind="evaluation",
    catalogue=("thought-propagation",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2310.03965, abstract; the catalogue's row"),
    deviations=(
        "The texts of the prompts are our choice.",
        "Answers are compared in both orders; below the first level the amended answer is taken.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_analogies.py"
        "::test_with_a_checker_the_answer_is_never_worse_than_the_first",
    ),
)
