"""Constraints on short texts: a world of words in which code checks every instruction.

The prompt `use fox owl no sun min 4 end dog : ` asks for a text with "fox" and "owl", without
"sun", of at least four words, which ends with "dog". The columns state the constraints as IFEval
does. A third of the demonstrations break a constraint, and some think longer than others.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grupo.core.types import Task

WORDS = ("sun", "sea", "oak", "fox", "owl", "bee", "elm", "ivy", "ant", "hen", "cat", "dog")
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
EMPTY_THINKING = "<think></think>"
TRAINED, HELD_OUT = 300, 60  # tasks
BROKEN = 0.4  # of the demonstrations break a constraint


@dataclass(frozen=True)
class WordConstraints:
    """The constraints of a task: one to five of them.

    Args:
        use: Words that occur; each is a constraint.
        forbidden: A word that does not occur; "" for none.
        minimum: Fewest words; 0 for any number.
        end: The last word; "" for any.
    """

    use: tuple[str, ...]
    forbidden: str
    minimum: int
    end: str

    @property
    def prompt(self) -> str:
        """The constraints in words.

        >>> WordConstraints(("fox",), "sun", 4, "dog").prompt
        'use fox no sun min 4 end dog : '
        """
        parts = [
            f"use {' '.join(self.use)}",
            f"no {self.forbidden}" if self.forbidden else "",
            f"min {self.minimum}" if self.minimum else "",
            f"end {self.end}" if self.end else "",
        ]
        return f"{' '.join(filter(None, parts))} : "

    @property
    def columns(self) -> Mapping[str, Any]:
        """The constraints in the format of IFEval."""
        stated: list[tuple[str, Mapping[str, Any]]] = [
            ("keywords:existence", {"keywords": [word]}) for word in self.use
        ]
        if self.forbidden:
            stated.append(("keywords:forbidden_words", {"forbidden_words": [self.forbidden]}))
        if self.minimum:
            words = {"num_words": self.minimum, "relation": "at least"}
            stated.append(("length_constraints:number_words", words))
        if self.end:
            stated.append(("startend:end_checker", {"end_phrase": self.end}))
        return {
            "instruction_id_list": [name for name, _ in stated],
            "kwargs": [arguments for _, arguments in stated],
        }


def draw_constraints(rng: random.Random) -> WordConstraints:
    """Random constraints, which a text can meet together."""
    *use, forbidden, end = rng.sample(WORDS, rng.choice((3, 4)))
    return WordConstraints(
        tuple(use),
        forbidden if rng.random() < 0.7 else "",
        rng.choice((0, 3, 4, 5)),
        end if rng.random() < 0.7 else "",
    )


def tasks() -> list[Task]:
    """All tasks, those to train on first; `solution` meets all constraints after a plan."""
    rng = random.Random(0)
    found: dict[str, Task] = {}
    while len(found) < TRAINED + HELD_OUT:
        constraints = draw_constraints(rng)
        columns = {**constraints.columns, "solution": solution(constraints, rng)}
        prompt = constraints.prompt
        found.setdefault(prompt, Task(prompt, prompt, columns=columns))
    return list(found.values())


def training_tasks() -> Iterator[Task]:
    """The tasks to train on."""
    return iter(tasks()[:TRAINED])


def held_out_tasks() -> Iterator[Task]:
    """The others."""
    return iter(tasks()[TRAINED:])


def plan(constraints: WordConstraints) -> list[str]:
    """The words that a text needs, the last one last."""
    return [*constraints.use, *filter(None, [constraints.end])]


def solution(constraints: WordConstraints, rng: random.Random) -> str:
    """A text that meets all constraints, after its plan."""
    return written(plan(constraints), full_text(constraints, rng))


def full_text(constraints: WordConstraints, rng: random.Random) -> list[str]:
    """The words of a text that meets all constraints."""
    needed = plan(constraints)
    others = [word for word in WORDS if word not in (*needed, constraints.forbidden)]
    fillers = rng.sample(others, max(constraints.minimum - len(needed), 0))
    return [*fillers, *needed]


def written(thoughts: Sequence[str], words: Sequence[str]) -> str:
    """Thoughts and a text in their tags.

    >>> written(["fox"], ["sun", "fox"])
    '<think>fox</think><answer>sun fox</answer>'
    """
    return f"<think>{' '.join(thoughts)}</think><answer>{' '.join(words)}</answer>"


def demonstrations(task: Task) -> list[str]:
    """Four imperfect texts, of which one has no thoughts and others repeat them."""
    rng = random.Random(f"demonstrations {task.prompt}")
    constraints = read_constraints(task)
    return [_demonstration(constraints, rng, thinks=number > 0) for number in range(4)]


def read_constraints(task: Task) -> WordConstraints:
    """The constraints of a task, from its prompt."""
    words = str(task.prompt).split()[:-1]
    starts = [i for i, word in enumerate(words) if word in ("use", "no", "min", "end")]
    ends = [*starts[1:], len(words)]
    parts = {words[a]: words[a + 1 : b] for a, b in zip(starts, ends, strict=True)}
    return WordConstraints(
        tuple(parts["use"]),
        forbidden="".join(parts.get("no", [])),
        minimum=int("".join(parts.get("min", ["0"]))),
        end="".join(parts.get("end", [])),
    )


def _demonstration(constraints: WordConstraints, rng: random.Random, *, thinks: bool) -> str:
    words = full_text(constraints, rng)
    if rng.random() < BROKEN:
        words[rng.randrange(len(words))] = rng.choice(WORDS)
    if rng.random() < BROKEN:
        words = words[: max(len(words) - 1, 1)]
    repeats = rng.choice((1, 1, 2)) if thinks else 0
    return written(plan(constraints) * repeats, words)
