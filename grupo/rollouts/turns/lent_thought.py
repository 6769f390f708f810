"""Lent thoughts: another model thinks briefly, and the policy answers after its thought."""

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

ASK = (
    "{task}\n\nDo not answer. Write the steps that lead to the answer, in few words. If this is"
    " too hard for you, reply <STOP>."
)


@component
class LentThought:
    """A turn that begins with the thought of another role, between the policy's thinking tags.

    The policy continues after the closing tag and therefore does not think itself. If the other
    role replies `too_hard` or nothing, it lends no thought, and the policy answers as usual. The
    usage `lent/thoughts` counts the lent thoughts, and `lent/too_hard` the other turns. A lent
    thought is forced text, which is not trained on.

    Args:
        role: Role that lends the thought; "" for the policy itself.
        ask: Prompt of the lender, with {task}.
        too_hard: Text by which the lender declines, anywhere in its reply.
        max_tokens: Largest number of tokens of the lender's reply.
        start: Text before the thought, as the policy's chat template begins its thoughts; "" if the
            template writes it itself.
        end: Text after the thought. In the lender's reply, all that follows this text is cut.
        inner: Generates the answer, with or without a lent thought.

    Raises:
        ConfigError: `ask` lacks {task}. When the turn is taken: the tokenizer cannot represent the
            thought.
    """

    role: str = ""
    ask: str = ASK
    too_hard: NonEmptyString = "<STOP>"
    max_tokens: PositiveInt = 256
    start: str = "<think>\n"
    end: NonEmptyString = "\n</think>\n\n"
    inner: TurnStrategy = single_response

    def __post_init__(self) -> None:
        check_form("LentThought.ask", self.ask, ("task",))
        check_field(self, "end", bool(self.end.strip()), "a text that is not only white space")

    @property
    def provides(self) -> Provides:
        """The role that lends thoughts."""
        return Provides(roles=(self.role,) if self.role else ())

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        lender = actor.fork("lender", len(rollout.turns)).with_stop(max_new_tokens=self.max_tokens)
        prompt = with_task_text(observation, fill(self.ask, {"task": task_text(observation)}))
        reply = await private_reply(lender, rollout, prompt, role=self.role, label="lent thought")
        thought = self._thought(reply)
        is_lent = bool(thought) and self.too_hard not in reply
        add_external_usage({"lent/thoughts" if is_lent else "lent/too_hard": 1.0})
        if not is_lent:
            return await self.inner(actor, rollout, observation)
        text = f"{self.start}{thought}{self.end}"
        started = await append_forced(actor, rollout, observation, text)
        return await self.inner(actor, started, "")

    def _thought(self, reply: str) -> str:
        """The reply up to the end of its thoughts, without the tag at their beginning."""
        before, _, _ = reply.partition(self.end.strip())
        tag = self.start.strip()
        return before.strip().removeprefix(tag).strip() if tag else before.strip()


PAPER = Paper(
    title="Thought Manipulation: External Thought Can Be Efficient for Large Reasoning Models",
    use="A policy thinks at length, and a smaller or faster model's short thought is enough.",
    tags=("length", "hints"),
    kind="evaluation",
    catalogue=("thought-mani",),
    checked=("golden",),
    source=Source("abstract", "arXiv:2504.13626, abstract; the catalogue's row"),
    deviations=("The texts of the form and of the marker are our choice.",),
    missing=("A comparison on a pretrained model: docs/answer_time.md has eight answers of one.",),
    shown=(
        "tests/rollouts/turns/test_lent_thought.py"
        "::test_a_lent_thought_saves_the_policys_own_and_keeps_the_answer",
    ),
)
