"""Tasks whose rule the policy must find: `wug three ?`.

A made-up word stands for a rule, a direction and an amount, by which the digit is counted:
`up four : seven`. The reward is for the result. `taught_requests.py` has the models.
"""

import random

from grupo.core.types import Rollout, Task

WORDS = ("wug", "dax", "zib", "kel", "vor", "tas", "nib", "fep", "gol", "rud", "sem", "mup")
DIRECTIONS = {"up": 1, "down": -1}
AMOUNTS = ("one", "two", "three", "four")
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ASKED = WORDS[:4]  # the words of the tasks
LEVELS = (1, 2, 3)  # of hints
Rule = tuple[str, str]  # direction and amount
RULES = tuple((direction, amount) for direction in DIRECTIONS for amount in AMOUNTS)


def rule_of(word: str) -> Rule:
    """The rule that a word stands for."""
    return random.Random(word).choice(RULES)


def counted(rule: Rule, digit: int) -> str:
    """The digit after a rule.

    >>> counted(("up", "four"), 8)
    'two'
    """
    direction, amount = rule
    return DIGITS[(digit + DIRECTIONS[direction] * (1 + AMOUNTS.index(amount))) % 10]


def answer(rule: Rule, digit: int) -> str:
    """An answer: a rule and what it makes of the digit.

    >>> answer(("up", "four"), 3)
    'up four : seven'
    """
    return f"{' '.join(rule)} : {counted(rule, digit)}"


def result(text: str) -> str:
    """The last result of an answer, without a verdict behind it.

    >>> result("up one : four; wrong , up four : seven; right")
    'seven'
    """
    return text.rpartition(":")[2].partition(";")[0].strip()


def verdict(rollout: Rollout) -> str:
    """How an answer is judged in its own text: "right", "wrong", or "" without a judgement."""
    words = rollout.text.partition(";")[2].split()
    return words[0] if words else ""


def criteria(rule: Rule, digit: int) -> tuple[str, ...]:
    """What an answer by a rule must contain."""
    direction, amount = rule
    return (
        f"the direction {direction}",
        f"the amount {amount}",
        f"the result {counted(rule, digit)}",
    )


def is_met(criterion: str, text: str) -> bool:
    """Whether an answer meets a criterion.

    >>> [is_met(x, "up four : seven") for x in criteria(("up", "two"), 3)]
    [True, False, False]
    """
    _, name, value = criterion.split(" ", 2)
    rule, _, after = text.partition(":")
    return value == after.strip() if name == "result" else value in rule.split()


def parity(amount: str) -> str:
    """Whether an amount is even or odd."""
    return "even" if AMOUNTS.index(amount) % 2 else "odd"


def hint(rule: Rule, level: int) -> str:
    """A hint of a level: the direction; whether the amount is even, too; the amount.

    >>> [hint(("up", "four"), level) for level in LEVELS]
    ['up', 'up even', 'up four']
    """
    direction, amount = rule
    return " ".join((direction, ("", parity(amount), amount)[level - 1])).strip()


def rule_task(word: str, digit: int) -> Task:
    """A task with its answer, its solution, a solution in other words, and its rubric.

    >>> rule_task("wug", 3).prompt
    'wug three ?'
    """
    prompt, rule = f"{word} {DIGITS[digit]} ?", rule_of(word)
    result = counted(rule, digit)
    rubric = [{"name": x.split()[1], "criterion": x, "weight": 1.0} for x in criteria(rule, digit)]
    columns = {
        "word": word,
        "digit": digit,
        "solution": answer(rule, digit),
        "lecture": f"the rule of {word} is {rule[0]} by {rule[1]} so : {result}",
        "rubric": rubric,
    }
    return Task(prompt, prompt, result, columns=columns)


def rule_tasks(held_out: bool) -> list[Task]:
    """All tasks of a part, of four of the words: the digits zero and five are held out.

    Args:
        held_out: Whether the part is the one for evaluation.
    """
    digits = [digit for digit in range(10) if (digit % 5 == 0) == held_out]
    return [rule_task(word, digit) for digit in digits for word in ASKED]
