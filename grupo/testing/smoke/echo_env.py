"""Echo: the world is a digit to be said again, with up to three letters before it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.component import piece
from grupo.core.types import Group, Observation, Rollout, Task, Verdict

DIGITS, LETTERS = "0123", "ab"
LIMIT = 4  # tokens of an answer, its end included


@dataclass(frozen=True)
class Seen:
    """What a number of a rollout can depend on."""

    text: str
    tokens: tuple[int, ...]
    right: float
    mean: float  # of its group


def _label(seen: Seen) -> float:
    return float(DIGITS.find(seen.text[-1:])) if seen.text else -1.0


def _letters(seen: Seen) -> float:
    return float(sum(c in LETTERS for c in seen.text))


def _thinks(seen: Seen) -> float:
    return float(seen.text[:1] in tuple(LETTERS))


def _well_formed(seen: Seen) -> float:
    return float(seen.text[-1:] in tuple(DIGITS))


def _win_rate(seen: Seen) -> float:
    """The share of its group that it beats, a draw being half of that."""
    return 0.5 + (seen.right - seen.mean) / 2


def _never(seen: Seen) -> float:
    return 0.0


def _always(seen: Seen) -> float:
    return 1.0


def _half(seen: Seen) -> float:
    return 0.5


def _right(seen: Seen) -> float:
    """Whether it is right: what any number is here that is not named otherwise."""
    return seen.right


NUMBERS: Mapping[str, Callable[[Seen], float]] = {
    "agreement/prompt": _never,
    "answer_probability_alone": _never,
    "baseline": _half,
    "budget": _always,
    "cluster": _label,
    "construction": _thinks,
    "cut": _never,
    "difficulty": _always,
    "feasible": _always,
    "first_call": _always,
    "first_length": _always,
    "format": _well_formed,
    "leak": _never,
    "level": _never,
    "mode": _thinks,
    "needed": _never,
    "overlong": _never,
    "rank": _win_rate,
    "think": _thinks,
    "tools": _letters,
    "win_rate": _win_rate,
}


def _last(seen: Seen) -> tuple[float, ...]:
    """The reward at the last action: what any mark is here that is not named otherwise."""
    return (*[0.0] * (len(seen.tokens) - 1), seen.right)[: len(seen.tokens)]


def _tokens(seen: Seen) -> tuple[float, ...]:
    return tuple(map(float, seen.tokens))


def _first(seen: Seen) -> tuple[float, ...]:
    return (1.0, *[0.0] * len(seen.tokens))[: len(seen.tokens)]


def _end(seen: Seen) -> tuple[float, ...]:
    return _first(seen)[::-1]


def _one_state(seen: Seen) -> tuple[float, ...]:
    return (0.0,) * len(seen.tokens)


def _ones(seen: Seen) -> tuple[float, ...]:
    return (1.0,) * len(seen.tokens)


def _judged(seen: Seen) -> tuple[float, ...]:
    return (seen.right,) * len(seen.tokens)


MARKS: Mapping[str, Callable[[Seen], tuple[float, ...]]] = {
    "action": _tokens,
    "answer": _end,
    "decision": _one_state,
    "dt": _ones,
    "part": _tokens,
    "prm": _judged,
    "repeated": _one_state,
    "state": _one_state,
    "std": _ones,
    "step": _one_state,
}


@piece
class Echo:
    """Reward 1 for an answer that ends with the digit shown, moved on by `shift`.

    Every number in `parts`, and every mark in `marks`, is given besides; `truth`, always, says
    whether the digit was the one shown.
    """

    shift: int = 0
    parts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return None if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        rights = [_says(rollout, digit(task, self.shift)) for rollout in rollouts]
        mean = sum(rights) / len(rights)
        seen = [
            Seen(one.text, tuple(t for _, a in one.turns for t in a.parts), right, mean)
            for one, right in zip(rollouts, rights, strict=True)
        ]
        truth = [_says(rollout, digit(task, 0)) for rollout in rollouts]
        return [self._verdict(*pair) for pair in zip(seen, truth, strict=True)]

    def _verdict(self, seen: Seen, truth: float) -> Verdict:
        parts = {name: NUMBERS.get(name, _right)(seen) for name in self.parts}
        marks = {name: MARKS.get(name, _last)(seen) for name in self.marks}
        return Verdict(seen.right, {**parts, "truth": truth}, marks)


def _says(rollout: Rollout, wanted: str) -> float:
    return float(rollout.text[-1:] == wanted)


def digit(task: Task, shift: int) -> str:
    """The digit that is right."""
    return DIGITS[(int(task.answer) + shift) % len(DIGITS)]


@piece
class Digits:
    """A task for each digit, under so many names.

    Columns: its right answer as `solution`, as `hint` and as the only one of its `hints`; as
    `paraphrases` its prompt, twice.
    """

    shift: int = 0
    names: int = 4

    def load(self) -> Sequence[Task]:
        tasks = [Task(f"{i}{d}", f"={d}", d) for i in range(self.names) for d in DIGITS]
        return [replace(task, columns=self._columns(task)) for task in tasks]

    def _columns(self, task: Task) -> dict[str, object]:
        right = digit(task, self.shift)
        helped = {"hint": right, "hints": (right,)}
        return {"solution": right, "paraphrases": (task.prompt,) * 2, **helped}


def hinted(group: Group, rollout: Rollout) -> Observation:
    """The prompt with the answer twice."""
    return f"{group.task.columns['solution']}={group.task.columns['solution']}"


def hidden(group: Group, rollout: Rollout) -> Observation:
    """A prompt that shows nothing."""
    return "=="
