"""Revised answers: the policy reads its own answer and answers again, several times."""

from collections.abc import Mapping

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn, reject_answers
from grupo.core.ranges import Calls
from grupo.core.requires import Provides
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.best_of import as_chosen
from grupo.rollouts.turns.choices import text_since
from grupo.rollouts.turns.private_context import (
    as_answer,
    private_reply,
    task_text,
    with_task_text,
)

ASK = "{task}\n\nAn earlier answer: {answer}\n\nCheck it and answer again."
GUIDED = "{task}\n\nAn earlier answer: {answer}\n\n{guide}\n\nAnswer again."
GUIDE = "{task}\n\nAn answer: {answer}\n\nWhat should be done next to improve this answer?"
STOP = "{task}\n\nAn answer: {answer}\n\nIs this answer right and complete? Reply yes or no."


@component
class Revised:
    """A turn in which the policy answers and then revises its answer in private contexts.

    The last revision is the answer. Each revision has a context of its own, with the form `ask` in
    place of the last message, and is marked as `off_context`. Iteration of Thought
    (arXiv:2409.12618): with `stop` its autonomous form, without it its guided form, which has a
    fixed number of revisions.

    Args:
        most: Number of revisions; with `stop`, the largest number. The usage `revisions/at_limit`
            counts turns that reach it without a reply that stops them.
        ask: Prompt of a revision, with {task} and {answer}; and {guide}, if `guide` is given.
        guide: Prompt with {task} and {answer} to which the policy replies what to do next, before
            each revision; "" asks nothing.
        stop: Prompt with {task} and {answer} before each revision; a reply that begins with "yes"
            ends the turn. The answer is then chosen and no sample, see `BestOf`. "" never stops.
        role: Role that replies to `guide` and `stop`; "" for the policy itself.
        inner: Generates an answer.

    Raises:
        ConfigError: A form lacks a placeholder, or has one without a value.
    """

    most: Calls = 3
    ask: str = ASK
    guide: str = ""
    stop: str = ""
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        known = ("task", "answer")
        check_form("Revised.ask", self.ask, (*known, *["guide"] * bool(self.guide)))
        for field, form in {"guide": self.guide, "stop": self.stop}.items():
            if form:
                check_form(f"Revised.{field}", form, known)

    @property
    def provides(self) -> Provides:
        """The role that replies; with `stop`, an answer that is no sample."""
        return Provides(given=bool(self.stop), roles=(self.role,) if self.role else ())

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        first = await self.inner(actor.fork("answer", turn), rollout, observation)
        answer = first
        earlier: list[str] = []
        for i in range(1, self.most + 1):
            add_private_turn(f"answer {i}", text_since(rollout, answer))
            values = {"task": task_text(observation), "answer": text_since(rollout, answer)}
            helper = actor.fork("helper", turn, i)
            if self.stop and await self._is_final(helper, rollout, observation, values):
                break
            if self.guide:
                values["guide"] = await self._reply(
                    helper.fork("guide"), rollout, observation, self.guide, values, f"guide {i}"
                )
            prompt = with_task_text(observation, fill(self.ask, values))
            earlier.append(values["answer"])
            answer = await self.inner(actor.fork("revision", turn, i), rollout, prompt)
        else:
            add_external_usage({"revisions/at_limit": 1.0} if self.stop else {})
        reject_answers(earlier)
        answer = answer if answer is first else as_answer(rollout, first, answer)
        return as_chosen(rollout, answer) if self.stop else answer

    async def _is_final(
        self, actor: Actor, rollout: Rollout, observation: Observation, values: Mapping[str, str]
    ) -> bool:
        """Whether the reply to `stop` begins with yes."""
        reply = await self._reply(actor, rollout, observation, self.stop, values, "stop?")
        return reply.strip().lower().startswith("yes")

    async def _reply(
        self,
        actor: Actor,
        rollout: Rollout,
        observation: Observation,
        form: str,
        values: Mapping[str, str],
        label: str,
    ) -> str:
        """The private reply of the role to a form."""
        prompt = with_task_text(observation, fill(form, values))
        return await private_reply(actor, rollout, prompt, role=self.role, label=label)


PAPER = Paper(
    title="Iteration of Thought: Leveraging Inner Dialogue for Autonomous Large Language Model "
    "Reasoning",
    use="More tokens may be spent on an answer than one attempt takes; compare with Vote first.",
    tags=("hints",),
    kind="evaluation",
    catalogue=("iteration-of-thought",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2409.12618, abstract; the catalogue's row"),
    deviations=(
        "The texts of the forms are our choice.",
        "The autonomous form asks whether the answer is final in a reply of its own.",
    ),
    missing=("A comparison on a pretrained model: recipes/real/answer_time.py runs it.",),
    shown=(
        "tests/rollouts/turns/test_revised.py"
        "::test_a_stop_that_asks_needs_three_answers_where_a_fixed_number_needs_five",
    ),
)
