"""Questions about documents of rules: the codes of some objects."""

import math
from collections.abc import Mapping, Sequence
from random import Random

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.rng import make_rng

NAMES = """
anchor apron arrow badge basket bell bench bottle bowl bridge broom bucket button candle carpet
chair clock comb compass cradle curtain desk drum fence flag fork glove guitar hammer kettle key
kite ladder lamp mirror needle pillow rope shelf wheel
"""
OBJECTS = tuple(NAMES.split())
DIGITS = 10
QUESTION = "which codes have {} here? "
RULES_PREFIX = "Rules: "  # between a question and a document
Rules = Mapping[str, int]  # codes by their object


@component
class DocumentQuestions:
    """Questions about one document of rules, each about several objects.

    A rule is an object and its code, a digit: `lamp-4 `. The answer has the codes in the order of
    the question; guessed codes are right in one of 10^num_objects answers.
    Columns: `rules` is the document, which is not in the prompt, and `solution` is the answer.

    Args:
        num_rules: Rules of the document, at most 40.
        num_objects: Objects of a question.
        size: Number of questions.
        seed: Seed of the questions.
        document_seed: Seed of the document.

    >>> task = DocumentQuestions(3, num_objects=2).load()[0]
    >>> print(task.prompt, task.columns["rules"], task.reference_answer, sep="| ")
    which codes have badge cradle here? | fork-3 cradle-2 badge-9 | badge 9. cradle 2
    """

    num_rules: PositiveInt = 40
    num_objects: PositiveInt = 4
    size: PositiveInt = 1000
    seed: int = 0
    document_seed: int = 0

    def __post_init__(self) -> None:
        _check_count(self, "num_rules", self.num_rules, 1)
        is_allowed = self.num_objects <= self.num_rules
        check_field(self, "num_objects", is_allowed, f"1 to num_rules = {self.num_rules}")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rules = _random_rules(make_rng(self.document_seed, "document"), self.num_rules)
        rng = make_rng(self.seed, "document question", index)
        return _task(rules, rng.sample([*rules], self.num_objects))


@component
class RuleBooks:
    """Questions about random documents, each about another one; some prompts show it.

    The answer to a question whose document is not shown can only be guessed. The logarithm of the
    number of rules is uniform. Columns are those of `DocumentQuestions`.

    Args:
        min_rules: Fewest rules of a document.
        max_rules: Most rules, at most 40.
        max_objects: Most objects of a question.
        size: Number of tasks.
        seed: Seed of the tasks.
        shown_share: Share of prompts that end with the document.
    """

    min_rules: PositiveInt = 1
    max_rules: PositiveInt = 40
    max_objects: PositiveInt = 16
    size: PositiveInt = 1000
    seed: int = 0
    shown_share: Probability = 0.75

    def __post_init__(self) -> None:
        _check_count(self, "max_rules", self.max_rules, self.min_rules)

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "rule book", index)
        log_count = rng.uniform(math.log(self.min_rules), math.log(self.max_rules))
        rules = _random_rules(rng, round(math.exp(log_count)))
        shown = f"{RULES_PREFIX}{_document(rules)}" if rng.random() < self.shown_share else ""
        names = rng.sample([*rules], rng.randint(1, min(self.max_objects, len(rules))))
        return _task(rules, names, shown)


def _check_count(source: object, field: str, count: int, least: int) -> None:
    check_field(source, field, least <= count <= len(OBJECTS), f"{least} to {len(OBJECTS)}")


def _random_rules(rng: Random, count: int) -> Rules:
    return {name: rng.randrange(DIGITS) for name in rng.sample(OBJECTS, count)}


def _document(rules: Rules) -> str:
    return "".join(rule_text(name, code) for name, code in rules.items())


def rule_text(name: str, code: int) -> str:
    """A rule of a document.

    >>> rule_text("lamp", 4)
    'lamp-4 '
    """
    return f"{name}-{code} "


def _task(rules: Rules, names: Sequence[str], shown: str = "") -> Task:
    prompt = QUESTION.format(" ".join(names)) + shown
    answer = ". ".join(f"{name} {rules[name]}" for name in names)
    columns = {"rules": _document(rules), "solution": answer}
    return Task(task_key(prompt), prompt, answer, "document_questions", columns)
