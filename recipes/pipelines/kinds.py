"""Questions about kinds of things, with a line of reason: a list by hand in place of WordNet.

The answer to `owl: bird, tool or fruit?` is the line `it is a bird` and the line `#### bird`.
"""

import random
from collections.abc import Iterator

from grupo.core.types import Task

KINDS = {
    "bird": ("owl", "hawk", "duck", "robin", "crow", "goose"),
    "tool": ("hammer", "saw", "drill", "wrench", "axe", "shovel"),
    "fruit": ("apple", "plum", "pear", "cherry", "grape", "lemon"),
    "fish": ("salmon", "trout", "tuna", "carp", "cod", "eel"),
    "metal": ("iron", "copper", "tin", "zinc", "silver", "gold"),
    "drink": ("tea", "coffee", "milk", "cider", "beer", "juice"),
}
MARKER = "####"
ALL = [(word, kind) for kind, words in KINDS.items() for word in words]
OPTIONS = 4
ASK = (
    "{question} Reply in two lines. First line: what it is. Second line: #### and the one word"
    " of the list that is right."
)


def question(number: int, form: str = "{question}\n") -> Task:
    """A question: a thing, its kind and three others in any order; things take turns.

    Args:
        number: Number of the question; equal numbers are equal questions.
        form: Form of the prompt with {question} or {word}.
    """
    rng = random.Random(f"kind {number}")
    word, kind = ALL[number % len(ALL)]
    others = rng.sample([other for other in KINDS if other != kind], OPTIONS - 1)
    options = rng.sample([kind, *others], OPTIONS)
    text = f"{word}: {', '.join(options[:-1])} or {options[-1]}?"
    prompt = form.replace("{question}", text).replace("{word}", word)
    columns = {"word": word, "options": options}
    return Task(f"{number} {prompt}", prompt, kind, columns=columns)


def questions(first: int, count: int, form: str = "{question}\n") -> Iterator[Task]:
    """The questions of some numbers."""
    return (question(number, form) for number in range(first, first + count))


def reasoned(task: Task, right: float, careful: float = 0.95) -> str:
    """An answer whose reason is right with probability `right`, and which follows its reason.

    Args:
        task: The question.
        right: Probability that the reason names the right kind.
        careful: Probability that the answer is the kind that the reason names.
    """
    rng = random.Random(f"reason {task.key}")
    options = task.columns["options"]
    kind = task.reference_answer if rng.random() < right else rng.choice(options)
    answer = kind if rng.random() < careful else rng.choice(options)
    return f"it is a {kind}\n{MARKER} {answer}"
