"""Echo: the world is a digit to be said again, with up to three letters before it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.component import component
from grupo.core.types import Group, Observation, RewardResult, Rollout, Task

DIGITS, LETTERS = "0123", "ab"
MAX_NEW_TOKENS = 4  # tokens of an answer, its end included


@dataclass(frozen=True)
class EchoContext:
    """What a number of a rollout can depend on."""

    text: str
    tokens: tuple[int, ...]
    correct: float
    group_mean: float  # of its group


def _answer_digit(context: EchoContext) -> float:
    return float(DIGITS.find(context.text[-1:])) if context.text else -1.0


def _num_letters(context: EchoContext) -> float:
    return float(sum(c in LETTERS for c in context.text))


def _starts_with_letter(context: EchoContext) -> float:
    return float(context.text[:1] in tuple(LETTERS))


def _ends_with_digit(context: EchoContext) -> float:
    return float(context.text[-1:] in tuple(DIGITS))


def _win_rate(context: EchoContext) -> float:
    """The share of its group that it beats, a draw being half of that."""
    return 0.5 + (context.correct - context.group_mean) / 2


def _zero(context: EchoContext) -> float:
    return 0.0


def _one(context: EchoContext) -> float:
    return 1.0


def _one_half(context: EchoContext) -> float:
    return 0.5


def _is_correct(context: EchoContext) -> float:
    """Whether it is right: what any number is here that is not named otherwise."""
    return context.correct


REWARD_TERMS: Mapping[str, Callable[[EchoContext], float]] = {
    "agreement/prompt": _zero,
    "answer_probability_alone": _zero,
    "baseline": _one_half,
    "budget": _one,
    "cluster": _answer_digit,
    "construction": _starts_with_letter,
    "cut": _zero,
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
    "tools": _num_letters,
    "win_rate": _win_rate,
}


def _reward_at_last_token(context: EchoContext) -> tuple[float, ...]:
    """The reward at the last action: what any mark is here that is not named otherwise."""
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
    "part": _token_ids,
    "prm": _correct_per_token,
    "repeated": _zero_per_token,
    "state": _zero_per_token,
    "std": _one_per_token,
    "step": _zero_per_token,
}


@component
class EchoEnv:
    """Reward 1 for an answer that ends with the digit shown, moved on by `shift`.

    Every number in `parts`, and every mark in `step_values`, is given besides; `truth`, always, says
    whether the digit was the one shown.
    """

    shift: int = 0
    reward_terms: tuple[str, ...] = ()
    step_values: tuple[str, ...] = ()

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        rights = [_ends_with(rollout, correct_digit(task, self.shift)) for rollout in rollouts]
        mean = sum(rights) / len(rights)
        seen = [
            EchoContext(one.text, tuple(t for _, a in one.turns for t in a.items), right, mean)
            for one, right in zip(rollouts, rights, strict=True)
        ]
        truth = [_ends_with(rollout, correct_digit(task, 0)) for rollout in rollouts]
        return [self._reward_result(*pair) for pair in zip(seen, truth, strict=True)]

    def _reward_result(self, context: EchoContext, truth: float) -> RewardResult:
        parts = {name: REWARD_TERMS.get(name, _is_correct)(context) for name in self.reward_terms}
        marks = {
            name: STEP_VALUES.get(name, _reward_at_last_token)(context) for name in self.step_values
        }
        return RewardResult(context.correct, {**parts, "truth": truth}, marks)


def _ends_with(rollout: Rollout, text: str) -> float:
    return float(rollout.text[-1:] == text)


def correct_digit(task: Task, shift: int) -> str:
    """The digit that is right."""
    return DIGITS[(int(task.reference_answer) + shift) % len(DIGITS)]


@component
class EchoTasks:
    """A task for each digit, under so many names.

    Columns: its right answer as `solution`, as `hint` and as the only one of its `num_hints`; as
    `paraphrases` its prompt, twice.
    """

    shift: int = 0
    copies: int = 4

    def load(self) -> Sequence[Task]:
        tasks = [Task(f"{i}{d}", f"={d}", d) for i in range(self.copies) for d in DIGITS]
        return [replace(task, columns=self._columns(task)) for task in tasks]

    def _columns(self, task: Task) -> dict[str, object]:
        right = correct_digit(task, self.shift)
        helped = {"hint": right, "hints": (right,)}
        return {"solution": right, "paraphrases": (task.prompt,) * 2, **helped}


def prompt_with_answer(group: Group, rollout: Rollout) -> Observation:
    """The prompt with the answer twice."""
    return f"{group.task.columns['solution']}={group.task.columns['solution']}"


def prompt_without_digit(group: Group, rollout: Rollout) -> Observation:
    """A prompt that shows nothing."""
    return "=="
