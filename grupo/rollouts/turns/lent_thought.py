"""Lent thoughts: another model writes a short thought, and the policy answers after it."""

from grupo.core.component import check_field, component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.forced_start import append_forced
from grupo.rollouts.turns.private_context import private_reply, task_text, with_task_text

THOUGHT = (
    "{task}\n\nDo not answer. Write the steps that lead to the answer, in few words. If this is"
    " too hard for you, reply <STOP>."
)


@component
class LentThought:
    """A turn that begins with a thought of another role, between the policy's thinking tags.

    The lender is the role that writes the thought. The policy continues after the closing tag and
    therefore does not think itself. If the lender declines or replies nothing, the policy answers
    as usual. The usage `lent/thoughts` counts turns with a lent thought, and `lent/declined` counts
    the other turns. A lent thought is forced text, which is not trained on.

    Args:
        role: Role of the lender; "" for the policy itself.
        thought_prompt: Prompt of the lender, with {task}.
        decline_text: The lender declines if its reply contains this text.
        thought_tokens: Largest number of tokens of the lender's reply.
        think_start: Opening tag before the thought; "" if the policy's chat template writes it.
        think_end: Closing tag after the thought. The lender's reply is cut at this tag.
        inner: Generates the answer, with or without a lent thought.

    Raises:
        ConfigError: `thought_prompt` lacks {task}. When the turn is taken: the tokenizer cannot
            represent the thought.
    """

    role: str = ""
    thought_prompt: str = THOUGHT
    decline_text: NonEmptyString = "<STOP>"
    thought_tokens: PositiveInt = 256
    think_start: str = "<think>\n"
    think_end: NonEmptyString = "\n</think>\n\n"
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("LentThought.thought_prompt", self.thought_prompt, ("task",))
        check_field(
            self, "think_end", bool(self.think_end.strip()), "a text that is not only white space"
        )

    @property
    def provides(self) -> Provides:
        """The role of the lender."""
        return Provides(roles=(self.role,) if self.role else ())

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        lender = actor.fork("lender", len(rollout.turns)).with_stop(
            max_new_tokens=self.thought_tokens
        )
        prompt = with_task_text(
            observation, fill(self.thought_prompt, {"task": task_text(observation)})
        )
        reply = await private_reply(lender, rollout, prompt, role=self.role, label="lent thought")
        thought = self._thought(reply)
        is_lent = bool(thought) and self.decline_text not in reply
        add_external_usage({"lent/thoughts" if is_lent else "lent/declined": 1.0})
        if not is_lent:
            return await self.inner(actor, rollout, observation)
        text = f"{self.think_start}{thought}{self.think_end}"
        started = await append_forced(actor, rollout, observation, text)
        return await self.inner(actor, started, "")

    def _thought(self, reply: str) -> str:
        """The lender's reply up to the closing tag, without an opening tag."""
        before, _, _ = reply.partition(self.think_end.strip())
        tag = self.think_start.strip()
        return before.strip().removeprefix(tag).strip() if tag else before.strip()


PAPER = Paper(
    title="Thought Manipulation: External Thought Can Be Efficient for Large Reasoning Models",
    use="A policy thinks at length, and a smaller or faster model's short thought is enough.",
    tags=("length", "hints"),
    kind="evaluation",
    catalogue=("thought-mani",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2504.13626, abstract; the catalogue's row"),
    deviations=("The prompt and the text by which the lender declines are our choice.",),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_lent_thought.py"
        "::test_a_lent_thought_saves_the_policys_own_and_keeps_the_answer",
    ),
)
