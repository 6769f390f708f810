"""Given pairs, each answer also as a revision of the other one and of itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from grupo.algo.losses.self_improvement import TERMS
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.requires import Provides
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.core.validation import describe_task
from grupo.rollouts.samplers.preference_pairs import PreferencePairs

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
            self.texts(task)

    def texts(self, task: Task) -> tuple[str, str]:
        """The rejected and the chosen answer of a task."""
        answers = PreferencePairs(self.chosen, self.rejected).given_answers(task)
        if len(answers) != 2 or any(len(answer) > 1 for answer, _ in answers):
            raise ConfigError(
                f"tasks: {describe_task(task)} has several answers or turns. Allowed with"
                " SelfImprovingPairs: one chosen and one rejected answer of one turn."
            )
        (((_, chosen),), _), (((_, rejected),), _) = answers
        return rejected, chosen

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        texts = self.texts(task)
        prompt = await initial_observation(task, env)
        rollouts = []
        for row in ROWS:
            is_first = row.previous == NO_PREVIOUS
            before = prompt if is_first else self.revision_prompt(prompt, texts[int(row.previous)])
            action = await actor.append_unsampled(
                empty := Rollout(source="preference"), before, texts[row.chosen]
            )
            terms = {ANSWER: float(row.chosen), PREVIOUS: row.previous}
            rollout = empty.append_turn(before, action)
            rollouts.append(replace(rollout, reward=terms[ANSWER], reward_terms=terms))
        return Group(task, tuple(rollouts))
