"""Analogies: the policy solves similar problems, and their answers amend its first answer."""

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
from grupo.rollouts.turns.best_of import as_chosen
from grupo.rollouts.turns.choices import CandidateChoice, text_since
from grupo.rollouts.turns.compared import Compared
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
    """A turn with two answers: the first one, and one that has read similar, solved problems.

    The policy proposes problems and answers each in a private context. With more layers the answers
    to these problems are themselves amended by problems that are similar to them. `by` chooses one
    of the two answers, the first one if it cannot decide. The usage `analogies/solved` and
    `analogies/none` counts solved problems, and turns without any, whose first answer stays.

    Args:
        count: Largest number of similar problems of a problem.
        layers: Levels of similar problems.
        thought_tokens: Largest number of tokens of a list of problems, or an answer to one.
        propose: Prompt with {task} and {count}; its reply has a problem on each line.
        merge: Prompt with {task}, {answer} and {analogies}, which the second answer replies to.
        by: Chooses between the first and the second answer.
        role: Role that proposes and answers similar problems; "" for the policy itself.
        inner: Generates both answers.

    Raises:
        ConfigError: A form lacks a placeholder, or has one without a value.
    """

    count: PositiveInt = 2
    layers: PositiveInt = 1
    thought_tokens: PositiveInt = 64
    propose: str = PROPOSE
    merge: str = MERGE
    by: CandidateChoice = Compared()
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("Analogies.propose", self.propose, ("task", "count"))
        check_form("Analogies.merge", self.merge, ("task", "answer", "analogies"))

    @property
    def provides(self) -> Provides:
        """The role that proposes; an answer that was chosen and is no sample."""
        return Provides(given=True, roles=(self.role,) if self.role else ())

    @property
    def private_tokens(self) -> int:
        """Largest number of tokens of similar problems, their answers and a problem they amend."""
        return (self.count + 3) * self.thought_tokens

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        task = task_text(observation)
        thinker = actor.fork("analogies", turn)
        first, analogies = await asyncio.gather(
            self.inner(actor.fork("answer", turn), rollout, observation),
            self._analogies(thinker, rollout, observation, task, self.layers),
        )
        if not analogies:
            add_external_usage({"analogies/none": 1.0})
            return as_chosen(rollout, first)
        values = {"task": task, "answer": text_since(rollout, first), "analogies": analogies}
        prompt = with_task_text(observation, fill(self.merge, values))
        merging = actor.fork("merge", turn)
        second = await answer_to_prompt(merging, rollout, observation, prompt, self.inner)
        answers = (first, second)
        index = await self.by(actor, rollout, answers)
        for i, answer in enumerate(answers):
            label = f"answer {i + 1}" + ", chosen" * (i == index)
            add_private_turn(label, text_since(rollout, answer))
        return as_chosen(rollout, answers[index])

    async def _analogies(
        self, actor: Actor, rollout: Rollout, observation: Observation, problem: str, layers: int
    ) -> str:
        """Problems similar to one, with their answers, one a line; "" if there are none."""

        async def reply(name: str, form: str, values: Mapping[str, str]) -> str:
            prompt = with_task_text(observation, fill(form, values))
            limited = actor.fork(name).with_stop(max_new_tokens=self.thought_tokens)
            return await private_reply(limited, rollout, prompt, role=self.role, label=name)

        async def solved(number: int, similar: str) -> str:
            values = {"task": similar}
            values["answer"] = await reply(f"solve {number}", "{task}", values)
            if layers > 1:
                nested = actor.fork("nested", number)
                inner = self._analogies(nested, rollout, observation, similar, layers - 1)
                values["analogies"] = await inner
            if values.get("analogies"):
                values["answer"] = await reply(f"amend {number}", self.merge, values)
            return f"{similar} {' '.join(values['answer'].split())}"

        values = {"task": problem, "count": str(self.count)}
        proposed = listed_lines(await reply("propose", self.propose, values))
        others = [line for line in proposed if line != problem.strip()][: self.count]
        add_external_usage({"analogies/solved": float(len(others))})
        return "\n".join(await asyncio.gather(*(solved(i, x) for i, x in enumerate(others, 1))))


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
        "The texts of the forms are our choice.",
        "Answers are compared in both orders; in nested layers the amended answer is taken.",
    ),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_analogies.py"
        "::test_with_a_checker_the_answer_is_never_worse_than_the_first",
    ),
)
