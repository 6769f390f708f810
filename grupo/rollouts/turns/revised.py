"""Revised answers: the policy reads its own answer and answers again, several times."""

from collections.abc import Mapping
from dataclasses import replace

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.message_content import content_text
from grupo.core.paper import Paper, Source
from grupo.core.private_turns import add_private_turn, reject_answers
from grupo.core.ranges import Calls
from grupo.core.requires import Provides
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.best_of import as_chosen
from grupo.rollouts.turns.choices import text_since

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
        text = (await actor(replace(rollout, role=self.role), prompt)).text
        add_private_turn(label, text)
        return text


def as_answer(before: Rollout, first: Rollout, revision: Rollout) -> Rollout:
    """The revision as the answer to the observation that `first` answers.

    Args:
        before: The rollout before the turn.
        first: The rollout after the first answer.
        revision: The rollout after a revision, which has another observation.
    """
    start = len(before.turns)
    observation, answered = first.turns[start]
    (_, response), *rest = revision.turns[start:]
    context = {
        "observation": answered.observation,
        "resets_context": answered.resets_context,
        "rewrites_history": answered.rewrites_history,
    }
    turns = ((observation, replace(response, **context)), *rest)
    new = ((o, replace(response, off_context=True, routes="")) for o, response in turns)
    return replace(first, turns=(*before.turns, *new))


def task_text(observation: Observation) -> str:
    """The text of an observation; of a chat, that of the user's last message."""
    if isinstance(observation, str):
        return observation
    return content_text(observation[_last_user(observation)].get("content"))


def with_task_text(observation: Observation, text: str) -> Observation:
    """The observation with another text; of a chat, in the user's last message, which ends it.

    Images and other media of the message stay before the text.
    """
    if isinstance(observation, str):
        return text
    index = _last_user(observation)
    content = observation[index].get("content")
    parts = content if isinstance(content, list | tuple) else ()
    media = [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]
    new = [*media, {"type": "text", "text": text}] if media else text
    return (*observation[:index], {**observation[index], "content": new})


def _last_user(observation: Observation) -> int:
    """Index of the user's last message; the last message if there is none of the user."""
    roles = [message.get("role") for message in observation if not isinstance(message, str)]
    return max((i for i, role in enumerate(roles) if role == "user"), default=len(roles) - 1)


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
