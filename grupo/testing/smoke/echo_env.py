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
        agreement: Fraction of the group's answers with the same last character.
        truncated: 1 if the token limit ended the answer, otherwise 0.
        copy: Number of the task's copy, 0 to 3: a property of the task that the prompt hides.
    """

    text: str
    tokens: tuple[int, ...]
    correct: float
    group_mean: float
    agreement: float
    truncated: float
    copy: int


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


def _has_b(context: EchoContext) -> float:
    return float("b" in context.text)


def _has_no_b(context: EchoContext) -> float:
    return float("b" not in context.text)


def _first_letter(context: EchoContext) -> float:
    """Position of the first letter, -1 without one."""
    positions = [i for i, character in enumerate(context.text) if character in LETTERS]
    return float(positions[0]) if positions else -1.0


def _first_length(context: EchoContext) -> float:
    """Characters up to the first digit, that included; 0 without one."""
    lengths = [i for i, character in enumerate(context.text, 1) if character in DIGITS]
    return float(lengths[0]) if lengths else 0.0


def _agreement(context: EchoContext) -> float:
    return context.agreement


def _truncated(context: EchoContext) -> float:
    return context.truncated


def _quarter_of_copy(context: EchoContext) -> float:
    """0, 1/4, 1/2 or 3/4, by task."""
    return context.copy / 4


def _one_plus_copy(context: EchoContext) -> float:
    """1 to 4, by task."""
    return 1.0 + context.copy


def _is_odd_copy(context: EchoContext) -> float:
    return float(context.copy % 2)


def _is_correct(context: EchoContext) -> float:
    """The value of every reward term that `REWARD_TERMS` does not list."""
    return context.correct


REWARD_TERMS: Mapping[str, Callable[[EchoContext], float]] = {
    "agreement/prompt": _agreement,
    "answer_probability_alone": _quarter_of_copy,
    "baseline": _quarter_of_copy,
    "budget": _one_plus_copy,
    "cluster": _answer_digit,
    "construction": _starts_with_letter,
    "difficulty": _one_plus_copy,
    "feasible": _has_no_b,
    "first_call": _first_letter,
    "first_length": _first_length,
    "format": _ends_with_digit,
    "leak": _has_b,
    "mode": _starts_with_letter,
    "needed": _is_odd_copy,
    "overlong": _truncated,
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


def _copy_per_token(context: EchoContext) -> tuple[float, ...]:
    """The state before the only turn: a property of the task, so equal within a group."""
    return (float(context.copy),) * len(context.tokens)


def _is_first_token(context: EchoContext) -> tuple[float, ...]:
    return (1.0, *[0.0] * len(context.tokens))[: len(context.tokens)]


def _is_last_token(context: EchoContext) -> tuple[float, ...]:
    return _is_first_token(context)[::-1]


def _is_decision(context: EchoContext) -> tuple[float, ...]:
    """1 for a letter at the beginning, which stands for the decision to think."""
    return tuple(_starts_with_letter(context) * is_first for is_first in _is_first_token(context))


def _is_repeated(context: EchoContext) -> tuple[float, ...]:
    """1 for a token that occurred before in the answer."""
    tokens = context.tokens
    return tuple(float(token in tokens[:i]) for i, token in enumerate(tokens))


def _position(context: EchoContext) -> tuple[float, ...]:
    return tuple(map(float, range(len(context.tokens))))


def _decreasing(context: EchoContext) -> tuple[float, ...]:
    """1, 1/2, 1/3, ..."""
    return tuple(1.0 / (1 + i) for i in range(len(context.tokens)))


def _correct_per_token(context: EchoContext) -> tuple[float, ...]:
    return (context.correct,) * len(context.tokens)


STEP_VALUES: Mapping[str, Callable[[EchoContext], tuple[float, ...]]] = {
    "action": _token_ids,
    "answer": _is_last_token,
    "decision": _is_decision,
    "dt": _decreasing,
    "index": _position,
    "item": _token_ids,
    "prm": _correct_per_token,
    "repeated": _is_repeated,
    "state": _copy_per_token,
    "std": _decreasing,
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
        endings = [rollout.text[-1:] for rollout in rollouts]
        results: list[RewardResult] = []
        for i, rollout in enumerate(rollouts):
            context = EchoContext(
                rollout.text,
                tuple(token for _, response in rollout.turns for token in response.items),
                correct[i],
                group_mean,
                agreement=endings.count(endings[i]) / len(endings),
                truncated=float(rollout.truncated),
                copy=task.columns["copy"],
            )
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

    Columns: the correct answer as `solution`, `chosen`, `hint` and `rules`, as the only one of
    `hints` and as the only criterion of `rubric`; the next digit as `rejected`; the prompt, twice,
    as `paraphrases`; the number of the copy as `copy`; 0.4 or 0.6 as `pass_rate`.

    Args:
        shift: The shift of the environment, for the columns.
        copies: Number of tasks for each digit.
    """

    shift: int = 0
    copies: int = 4

    def load(self) -> Sequence[Task]:
        return [self._task(copy, digit) for copy in range(self.copies) for digit in DIGITS]

    def _task(self, copy: int, digit: str) -> Task:
        task = Task(f"{copy}{digit}", f"={digit}", digit)
        return replace(task, columns={**self._columns(task), "copy": copy})

    def _columns(self, task: Task) -> dict[str, object]:
        answer = correct_digit(task, self.shift)
        return {
            "solution": answer,
            "chosen": answer,
            "rejected": correct_digit(task, self.shift + 1),
            "paraphrases": (task.prompt,) * 2,
            "hint": answer,
            "hints": (answer,),
            "rules": answer,
            "pass_rate": 0.4 + 0.2 * (int(task.reference_answer) % 2),
            "rubric": ({"name": "digit", "criterion": answer},),
        }


def prompt_with_answer(group: Group, rollout: Rollout) -> Observation:
    """A prompt that contains the correct answer twice."""
    return f"{group.task.columns['solution']}={group.task.columns['solution']}"


def prompt_without_digit(group: Group, rollout: Rollout) -> Observation:
    """A prompt without a digit."""
    return "=="
