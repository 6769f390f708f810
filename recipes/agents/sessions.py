"""Sessions in words: facts about people, one a session, and questions about them afterwards.

A session has a fact, `bako has owl .`, among remarks that nobody asks about. Some people get
another animal later. The reward of an answer is its share of all questions.
"""

import random
from collections.abc import Iterator

from grupo.core.types import Observation, Task
from grupo.util.bm25 import words

NAMES = tuple(a + b for a in ("ba", "ce", "di", "fo", "gu", "ha") for b in ("ko", "lim", "nax"))
ANIMALS = ("owl", "fox", "hen", "bee", "ant", "cat", "dog", "pig")
REMARKS = (
    "rain fell all day .",
    "a bus came late .",
    "soup was cold again .",
    "nobody saw that film .",
    "trains were full .",
    "lunch took an hour .",
)
ACKNOWLEDGED = "fine ."
QUESTION = "what has {name} ?"
FACT = "{name} has {animal} ."
CHAT_QUESTION = "Which animal does {name} have? Reply with one word."
CHAT_FACT = "{name} has a {animal}."


class Sessions:
    """The sessions of one task. Its columns are `sessions`, `questions` and `answers`."""

    def reset(self, task: Task) -> Observation:
        """The first session."""
        self.columns = task.columns
        self.turn = 0
        return self.observation()

    def observation(self) -> str:
        """The session, or the question, of the turn."""
        return [*self.columns["sessions"], *self.columns["questions"]][self.turn]

    def step(self, text: str) -> tuple[Observation, float, bool]:
        """The next session or question, and the reward of an answer."""
        asked = self.turn - len(self.columns["sessions"])
        answers = self.columns["answers"]
        reward = 0.0
        if asked >= 0:
            reward = float(named(text) == answers[asked]) / len(answers)
        self.turn += 1
        is_over = asked + 1 == len(answers)
        return ("" if is_over else self.observation()), reward, is_over


def named(text: str) -> str:
    """The first animal in an answer; "" if it names none.

    >>> named("It is an Owl.")
    'owl'
    """
    return next((word for word in words(text) if word in ANIMALS), "")


def fact(name: str, animal: str, form: str = FACT) -> str:
    """A fact.

    >>> fact("bako", "owl")
    'bako has owl .'
    """
    return form.format(name=name, animal=animal)


def session(said: str, rng: random.Random) -> str:
    """A session with a fact between two remarks, or before or after them."""
    sentences = rng.sample(REMARKS, 2)
    sentences.insert(rng.randrange(3), said)
    return " ".join(sentences)


def visits(
    first: int,
    count: int,
    sessions: int = 16,
    questions: int = 6,
    *,
    said: str = FACT,
    asked: str = QUESTION,
) -> Iterator[Task]:
    """Tasks: facts about different people, of which some change, then questions.

    Args:
        first: Number of the first task; equal numbers are equal tasks.
        count: Number of tasks.
        sessions: Number of sessions, a quarter of which change an earlier fact.
        questions: Number of questions, about different people.
        said: Form of a fact.
        asked: Form of a question.
    """
    for number in range(first, first + count):
        rng = random.Random(f"sessions {number}")
        names = rng.sample(NAMES, sessions - sessions // 4)
        changed = rng.sample(names, sessions // 4)
        facts = [(name, rng.choice(ANIMALS)) for name in names]
        facts += [(name, rng.choice(ANIMALS)) for name in changed]
        known = dict(facts)
        people = rng.sample(names, questions)
        columns = {
            "sessions": [session(fact(*pair, said), rng) for pair in facts],
            "questions": [asked.format(name=name) for name in people],
            "answers": [known[name] for name in people],
        }
        yield Task(f"sessions {number}", columns["sessions"][0], columns=columns)
