"""Pairs of given answers, in which each answer also occurs as a revision of both answers."""

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
    """One of the two answers, alone or as a revision of a previous answer."""

    is_chosen: bool
    previous: float  # 1 for the chosen answer, 0 for the rejected one, NO_PREVIOUS for none


ROWS = (
    RevisedAnswer(True, NO_PREVIOUS),
    RevisedAnswer(False, NO_PREVIOUS),
    *(RevisedAnswer(is_chosen, previous) for is_chosen in (True, False) for previous in (1.0, 0.0)),
)


@component
class RevisionPrompt:
    """The prompt for a revision: the task's prompt, an answer to it, and an instruction.

    Args:
        instruction: Text after the answer; in a chat, a message of the user.

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
    """A group of six given rollouts, made from a chosen answer w and a rejected answer l.

    Two rollouts are w and l as answers to the prompt. Four are revisions: w of w, w of l, l of w
    and l of l. The policy generates nothing. The reward is 1 for w and 0 for l. The reward term
    "answer_is_chosen" is 1 for w and 0 for l. "previous_is_chosen" is 1 for a revision of w, 0 for
    a revision of l, and 0.5 for an answer to the prompt.

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
        chosen, rejected = PreferencePairs(self.chosen, self.rejected).chosen_and_rejected(task)
        answers = [*rejected, *chosen]
        if len(answers) != 2 or any(len(answer.turns) > 1 for answer in answers):
            raise ConfigError(
                f"tasks: {describe_task(task)} has several answers or turns. Allowed with"
                " SelfImprovingPairs: one chosen and one rejected answer of one turn."
            )
        (((prompt, rejected_answer),), ((_, chosen_answer),)) = (x.turns for x in answers)
        pair = (rejected_answer, chosen_answer)  # indexed by `is_chosen` and `previous`
        return [
            Demonstration(
                ((self._prompt(prompt, pair, row), pair[row.is_chosen]),), answers[0].tools
            )
            for row in ROWS
        ]

    def _prompt(
        self, prompt: Observation, pair: tuple[Answer, Answer], row: RevisedAnswer
    ) -> Observation:
        """The prompt of a row, with the previous answer if there is one."""
        if row.previous == NO_PREVIOUS:
            return prompt
        previous = pair[int(row.previous)]
        text = previous if isinstance(previous, str) else content_text(previous["content"])
        return self.revision_prompt(prompt, text)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = given_rollouts(actor, self.solve(task))
        scored = (
            replace(
                rollout,
                reward=float(row.is_chosen),
                reward_terms={ANSWER: float(row.is_chosen), PREVIOUS: row.previous},
            )
            for rollout, row in zip(rollouts, ROWS, strict=True)
        )
        return Group(task, tuple(scored))
