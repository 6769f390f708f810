"""Echo: an environment in which the policy repeats a digit, with up to three letters before it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.component import component
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task

DIGITS = "0123"
LETTERS = "ab"
MAX_NEW_TOKENS = 4  # tokens of an answer, its end token included


@dataclass(frozen=True)
class EchoContext:
    """The facts about a rollout from which reward terms and step values are computed.

    Args:
        text: The answer.
        tokens: The tokens of the answer.
        correct: 1 if the answer is correct, otherwise 0.
        group_mean: Mean of `correct` over the rollout's group.
    """

    text: str
    tokens: tuple[int, ...]
    correct: float
    group_mean: float


def _answer_digit(context: EchoContext) -> float:
    return float(DIGITS.find(context.text[-1:])) if context.text else -1.0


def _num_letters(context: EchoContext) -> float:
    return float(sum(character in LETTERS for character in context.text))


def _starts_with_letter(context: EchoContext) -> float:
    return float(context.text[:1] in tuple(LETTERS))


def _ends_with_digit(context: EchoContext) -> float:
    return float(context.text[-1:] in tuple(DIGITS))


def _win_rate(context: EchoContext) -> float:
    """The fraction of its group that the rollout beats; a draw counts one half."""
    return 0.5 + (context.correct - context.group_mean) / 2


def _zero(context: EchoContext) -> float:
    return 0.0


def _one(context: EchoContext) -> float:
    return 1.0


def _one_half(context: EchoContext) -> float:
    return 0.5


def _is_correct(context: EchoContext) -> float:
    """The value of every reward term that `REWARD_TERMS` does not list."""
    return context.correct


REWARD_TERMS: Mapping[str, Callable[[EchoContext], float]] = {
    "agreement/prompt": _zero,
    "answer_probability_alone": _zero,
    "baseline": _one_half,
    "budget": _one,
    "budget_index": _one,
    "cluster": _answer_digit,
    "construction": _starts_with_letter,
    "cut": _zero,
    "cut_index": _zero,
    "difficulty": _one,
    "feasible": _one,
    "first_call": _one,
    "first_length": _one,
    "format": _ends_with_digit,
    "leak": _zero,
    "level": _zero,
    "mode": _starts_with_letter,
    "needed": _zero,
    "overlong": _zero,
    "rank": _win_rate,
    "think": _starts_with_letter,
    "tool_calls": _num_letters,
    "win_rate": _win_rate,
}


def _reward_at_last_token(context: EchoContext) -> tuple[float, ...]:
    """The value of every step value that `STEP_VALUES` does not list."""
    return (*[0.0] * (len(context.tokens) - 1), context.correct)[: len(context.tokens)]


def _token_ids(context: EchoContext) -> tuple[float, ...]:
    return tuple(map(float, context.tokens))


def _is_first_token(context: EchoContext) -> tuple[float, ...]:
    return (1.0, *[0.0] * len(context.tokens))[: len(context.tokens)]


def _is_last_token(context: EchoContext) -> tuple[float, ...]:
    return _is_first_token(context)[::-1]


def _zero_per_token(context: EchoContext) -> tuple[float, ...]:
    return (0.0,) * len(context.tokens)


def _one_per_token(context: EchoContext) -> tuple[float, ...]:
    return (1.0,) * len(context.tokens)


def _correct_per_token(context: EchoContext) -> tuple[float, ...]:
    return (context.correct,) * len(context.tokens)


STEP_VALUES: Mapping[str, Callable[[EchoContext], tuple[float, ...]]] = {
    "action": _token_ids,
    "answer": _is_last_token,
    "decision": _zero_per_token,
    "dt": _one_per_token,
    "index": _zero_per_token,
    "item": _token_ids,
    "prm": _correct_per_token,
    "repeated": _zero_per_token,
    "state": _zero_per_token,
    "std": _one_per_token,
}


@component
class EchoEnv:
    """Reward 1 for an answer that ends with the digit of the prompt, shifted by `shift`.

    Args:
        shift: Added to the digit, modulo 4; not 0 in runs with flipped sign.
        reward_terms: Reward terms to provide beside `truth`, which is 1 if the answer ends with the
            unshifted digit.
        step_values: Step values to provide.
    """

    shift: int = 0
    reward_terms: tuple[str, ...] = ()
    step_values: tuple[str, ...] = ()

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        correct = [_ends_with(rollout, correct_digit(task, self.shift)) for rollout in rollouts]
        truth = [_ends_with(rollout, correct_digit(task, 0)) for rollout in rollouts]
        group_mean = sum(correct) / len(correct)
        results: list[RewardResult] = []
        for i, rollout in enumerate(rollouts):
            tokens = tuple(token for _, action in rollout.turns for token in action.items)
            context = EchoContext(rollout.text, tokens, correct[i], group_mean)
            results.append(self._reward_result(context, truth[i]))
        return results

    def _reward_result(self, context: EchoContext, truth: float) -> RewardResult:
        reward_terms = {
            name: REWARD_TERMS.get(name, _is_correct)(context) for name in self.reward_terms
        }
        step_values = {
            name: STEP_VALUES.get(name, _reward_at_last_token)(context) for name in self.step_values
        }
        return RewardResult(context.correct, {**reward_terms, "truth": truth}, step_values)


def _ends_with(rollout: Rollout, character: str) -> float:
    return float(rollout.text[-1:] == character)


def correct_digit(task: Task, shift: int) -> str:
    """The digit that is correct for a task."""
    return DIGITS[(int(task.reference_answer) + shift) % len(DIGITS)]


@component
class EchoTasks:
    """A task for each digit, several times under different keys.

    Columns: the correct answer as `solution`, as `hint` and as the only one of `hints`; the prompt,
    twice, as `paraphrases`.

    Args:
        shift: The shift of the environment, for the columns.
        copies: Number of tasks for each digit.
    """

    shift: int = 0
    copies: int = 4

    def load(self) -> Sequence[Task]:
        tasks = [Task(f"{i}{d}", f"={d}", d) for i in range(self.copies) for d in DIGITS]
        return [replace(task, columns=self._columns(task)) for task in tasks]

    def _columns(self, task: Task) -> dict[str, object]:
        answer = correct_digit(task, self.shift)
        return {
            "solution": answer,
            "paraphrases": (task.prompt,) * 2,
            "hint": answer,
            "hints": (answer,),
        }


def prompt_with_answer(group: Group, rollout: Rollout) -> Observation:
    """A prompt that contains the correct answer twice."""
    return f"{group.task.columns['solution']}={group.task.columns['solution']}"


def prompt_without_digit(group: Group, rollout: Rollout) -> Observation:
    """A prompt without a digit."""
    return "=="
