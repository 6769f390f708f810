"""A model that reads an answer, names its first flaw and writes a hint."""

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.private_context import task_text, with_task_text

INTERVENER_ROLE = "intervener"
INTERVENE = (
    "{task}\n\nAn answer: {answer}\n\nQuote the first part of the answer that is wrong, then write"
    ' " => " and a short hint. Write "none" if no part is wrong.'
)


@component
class AskedIntervener:
    """Finds a flaw by asking a model: the policy of the role `intervener`, or the policy itself.

    The reply has the flawed part of the answer, `separator`, and the hint. The usage
    `intervener/unreadable` counts replies that are neither that nor `none`, such as a part that the
    answer does not have; they count as no flaw.

    Args:
        ask: Prompt with {task} and {answer}.
        separator: Text between the flawed part and the hint.
        none: Beginning of the reply to an answer without a flaw.

    Raises:
        ConfigError: The form lacks a placeholder, or has one without a value.
    """

    ask: str = INTERVENE
    separator: NonEmptyString = " => "
    none: NonEmptyString = "none"

    provides = Provides(roles=(INTERVENER_ROLE,))

    def __post_init__(self) -> None:
        check_form("AskedIntervener.ask", self.ask, ("task", "answer"))

    async def find_flaw(
        self, task: Task, env: Env, actor: Actor, text: str
    ) -> tuple[str, str] | None:
        """The flawed part of a text and a hint; None if the model finds none.

        Args:
            task: The task.
            env: Has the prompt of the task.
            actor: Generates the reply.
            text: What the policy wrote last.
        """
        observation = await initial_observation(task, env)
        prompt = fill(self.ask, {"task": task_text(observation), "answer": text})
        rollout = Rollout(role=INTERVENER_ROLE)
        reply = (await actor(rollout, with_task_text(observation, prompt))).text
        if reply.startswith(self.none):
            return None
        part, _, hint = reply.partition(self.separator)
        if not (part and hint and part in text):
            add_external_usage({"intervener/unreadable": 1.0})
            return None
        return part, hint
