"""Given pairs, each answer also as a revision of the other one and of itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from grupo.algo.losses.self_improvement import TERMS
from grupo.core.component import component
from grupo.core.demonstration import Answer, Demonstration
from grupo.core.interfaces import Actor, Env
from grupo.core.message_content import content_text
from grupo.core.requires import Provides
from grupo.core.types import Group, Observation, Task
from grupo.core.validation import describe_task
from grupo.rollouts.samplers.preference_pairs import PreferencePairs, given_rollouts
from grupo.util.errors import ConfigError

ANSWER, PREVIOUS = TERMS
NO_PREVIOUS = 0.5


class RevisedAnswer(NamedTuple):
    """An answer of a pair, in the context of the prompt alone or of a previous answer as well."""

    chosen: bool
    previous: float  # 1 the chosen one, 0 the rejected one, NO_PREVIOUS none


ROWS = (
    RevisedAnswer(True, NO_PREVIOUS),
    RevisedAnswer(False, NO_PREVIOUS),
    *(RevisedAnswer(chosen, previous) for chosen in (True, False) for previous in (1.0, 0.0)),
)


@component
class RevisionPrompt:
    """The prompt for a revision: the prompt, an answer to it, and an instruction.

    Args:
        instruction: Text behind the answer; in a chat, a message of the user.

    >>> RevisionPrompt(" Again: ")("2 + 2 =", "5")
    '2 + 2 =5 Again: '
    """

    instruction: str = "\n\nWrite a better answer.\n\n"

    def __call__(self, prompt: Observation, answer: str) -> Observation:
        if isinstance(prompt, str):
            return f"{prompt}{answer}{self.instruction}"
        instruction = {"role": "user", "content": self.instruction.strip()}
        return (*prompt, {"role": "assistant", "content": answer}, instruction)


@component
class SelfImprovingPairs:
    """Six given rollouts of a pair w, l: w and l, and as revisions w of w, w of l, l of w, l of l.

    The policy generates nothing. Reward 1 for w, 0 for l. Reward terms: "answer_is_chosen", 1 or 0,
    and "previous_is_chosen", 1 or 0, or 0.5 for an answer to the prompt alone.

    Args:
        chosen: Column of the chosen answer.
        rejected: Column of the rejected answer.
        revision_prompt: Prompt for a revision, from the prompt and the previous answer.
    """

    chosen: str = "chosen"
    rejected: str = "rejected"
    revision_prompt: Callable[[Observation, str], Observation] = RevisionPrompt()

    provides = Provides(reward_terms=(ANSWER, PREVIOUS), given=True)

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task without two different answers of one turn."""
        for task in tasks:
            self.solve(task)

    def solve(self, task: Task) -> Sequence[Demonstration]:
        """The six answers of a task, in the order of `ROWS`."""
        chosen, rejected = PreferencePairs(self.chosen, self.rejected).both(task)
        answers = [*rejected, *chosen]
        if len(answers) != 2 or any(len(answer.turns) > 1 for answer in answers):
            raise ConfigError(
                f"tasks: {describe_task(task)} has several answers or turns. Allowed with"
                " SelfImprovingPairs: one chosen and one rejected answer of one turn."
            )
        (((prompt, rejected_answer),), ((_, chosen_answer),)) = (x.turns for x in answers)
        texts = (rejected_answer, chosen_answer)
        return [
            Demonstration(
                ((self._prompt(prompt, texts, row), texts[row.chosen]),), answers[0].tools
            )
            for row in ROWS
        ]

    def _prompt(
        self, prompt: Observation, texts: tuple[Answer, Answer], row: RevisedAnswer
    ) -> Observation:
        """The prompt of a row: with the previous answer, if it has one."""
        if row.previous == NO_PREVIOUS:
            return prompt
        previous = texts[int(row.previous)]
        text = previous if isinstance(previous, str) else content_text(previous["content"])
        return self.revision_prompt(prompt, text)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = given_rollouts(actor, self.solve(task))
        scored = (
            replace(
                rollout,
                reward=float(row.chosen),
                reward_terms={ANSWER: float(row.chosen), PREVIOUS: row.previous},
            )
            for rollout, row in zip(rollouts, ROWS, strict=True)
        )
        return Group(task, tuple(scored))
