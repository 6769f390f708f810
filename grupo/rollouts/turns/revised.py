"""Revised answers: the policy reads its own answer and answers again, once or several times."""

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
from grupo.rollouts.turns.best_of import mark_not_sampled
from grupo.rollouts.turns.choices import text_since
from grupo.rollouts.turns.private_context import (
    private_reply,
    replace_answer,
    task_text,
    with_task_text,
)

REVISION = "{task}\n\nAn earlier answer: {answer}\n\nCheck it and answer again."
GUIDED_REVISION = "{task}\n\nAn earlier answer: {answer}\n\n{guide}\n\nAnswer again."
GUIDE = "{task}\n\nAn answer: {answer}\n\nWhat should be done next to improve this answer?"
STOP = "{task}\n\nAn answer: {answer}\n\nIs this answer right and complete? Reply yes or no."


@component
class Revised:
    """A turn in which the policy answers and then revises its answer in private contexts.

    The answer of the turn is the last revision. The policy generates each revision after
    `revision_prompt`, which stands in place of the user's last message. The revision is therefore
    marked as `off_context`.

    Iteration of Thought (arXiv:2409.12618) has two variants. Its guided variant makes a fixed
    number of revisions. Its autonomous variant asks `stop_prompt` before each revision.

    Args:
        max_revisions: Number of revisions, or with `stop_prompt` the largest number. The usage
            `revisions/at_limit` counts turns that reach this number without being stopped.
        revision_prompt: Prompt of a revision, with {task}, {answer}, and with `guide_prompt` also
            {guide}, the reply to it.
        guide_prompt: Prompt with {task} and {answer} before each revision, which asks what to do
            next; "" for none.
        stop_prompt: Prompt with {task} and {answer} before each revision, which asks whether the
            answer is final; "" for none. A reply that begins with "yes" ends the turn. The answer
            is then chosen and is marked as not `sampled`, see `BestOf`.
        role: Role that replies to `guide_prompt` and `stop_prompt`; "" for the policy itself.
        inner: Generates an answer.

    Raises:
        ConfigError: A prompt lacks a placeholder, or has one without a value.
    """

    max_revisions: Calls = 3
    revision_prompt: str = REVISION
    guide_prompt: str = ""
    stop_prompt: str = ""
    role: str = ""
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        known = ("task", "answer")
        needed = (*known, "guide") if self.guide_prompt else known
        check_form("Revised.revision_prompt", self.revision_prompt, needed)
        if self.guide_prompt:
            check_form("Revised.guide_prompt", self.guide_prompt, known)
        if self.stop_prompt:
            check_form("Revised.stop_prompt", self.stop_prompt, known)

    @property
    def provides(self) -> Provides:
        """The role that replies; with `stop_prompt`, the answer is no sample of the policy."""
        return Provides(given=bool(self.stop_prompt), roles=(self.role,) if self.role else ())

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        turn = len(rollout.turns)
        first = await self.inner(actor.fork("answer", turn), rollout, observation)
        answer = first
        earlier: list[str] = []
        for i in range(1, self.max_revisions + 1):
            add_private_turn(f"answer {i}", text_since(rollout, answer))
            values = {"task": task_text(observation), "answer": text_since(rollout, answer)}
            question_actor = actor.fork("helper", turn, i)
            if self.stop_prompt and await self._is_final(
                question_actor, rollout, observation, values
            ):
                break
            if self.guide_prompt:
                values["guide"] = await self._reply(
                    question_actor.fork("guide"),
                    rollout,
                    observation,
                    self.guide_prompt,
                    values,
                    f"guide {i}",
                )
            prompt = with_task_text(observation, fill(self.revision_prompt, values))
            earlier.append(values["answer"])
            answer = await self.inner(actor.fork("revision", turn, i), rollout, prompt)
        else:
            add_external_usage({"revisions/at_limit": 1.0} if self.stop_prompt else {})
        reject_answers(earlier)
        answer = answer if answer is first else replace_answer(rollout, first, answer)
        return mark_not_sampled(rollout, answer) if self.stop_prompt else answer

    async def _is_final(
        self, actor: Actor, rollout: Rollout, observation: Observation, values: Mapping[str, str]
    ) -> bool:
        """Whether the reply to `stop_prompt` begins with "yes"."""
        reply = await self._reply(actor, rollout, observation, self.stop_prompt, values, "stop?")
        return reply.strip().lower().startswith("yes")

    async def _reply(
        self,
        actor: Actor,
        rollout: Rollout,
        observation: Observation,
        prompt_form: str,
        values: Mapping[str, str],
        label: str,
    ) -> str:
        """The private reply of the role to a prompt whose placeholders have the values."""
        prompt = with_task_text(observation, fill(prompt_form, values))
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
        "The texts of the prompts are our choice.",
        "The autonomous variant asks whether the answer is final by a separate prompt.",
    ),
    missing=("A comparison on a pretrained model: recipes/real/answer_time.py runs it.",),
    shown=(
        "tests/rollouts/turns/test_revised.py"
        "::test_a_stop_that_asks_needs_three_answers_where_a_fixed_number_needs_five",
    ),
)
