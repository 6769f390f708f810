"""Rewards for answers that are an option or a number."""

import math
import re
from collections.abc import Mapping, Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.ranges import NonEmptyString, NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.math_text import strip_delimiters
from grupo.util.errors import ConfigError

MAX_CHARS = 2_000  # of an answer that is an option or a number
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# "B", "(B)", "B.", "B: text", "option B", "The answer is (B)", \text{B}
LABEL = re.compile(
    r"(?:(?:the )?(?:correct |final )?(?:answer|option|choice)(?: is)?:? *)?"
    r"(?:\\(?:text|mathrm|textbf)\{)?\(?(?P<label>[A-Z])(?P<closed>[)}]*)"
    r"(?:(?:[.:]|(?<=\)) )(?P<rest>.*)|\.?)",
    re.IGNORECASE | re.DOTALL,
)
NUMBER = re.compile(
    r"(?P<sign>[-+]?) *[$€£¥]? *(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?P<exponent>[eE][-+]?\d{1,3})?(?: *(?P<unit>%|[^\W\d_]{1,20}(?:[/ ][^\W\d_]{1,20})?)\.?)?",
    re.ASCII,
)
CHANGES_NUMBER = re.compile(
    r"(?:hundred|thousand|million|billion|trillion|dozen|k|bn|or|and|to|more|less|not)\b",
    re.IGNORECASE,
)


@component
class MultipleChoice(PerRolloutReward):
    r"""1 if the extracted answer is the right option, by its letter or its text, else 0.

    The reference answer is a letter, an option's text, or the index of an option as an int. The
    answer as a whole must be one option: a list of letters is none, and a letter with the text of
    another option is none.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong. By default the content
            of the last \boxed{…} after the thoughts, or the whole text if it has none.
        options: Column of the options' texts, in the order of their letters; without such a column
            only the letter counts.

    >>> from grupo.core.types import Response
    >>> task = Task("k", "?", "B", columns={"options": ["red", "blue"]})
    >>> texts = ("B", "(b) blue", "blue", "B. red", "A or B", "A, B")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> MultipleChoice()(task, rollouts)
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """

    extract: Extractor = final_answer
    options: NonEmptyString = "options"

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None or len(text) > MAX_CHARS:
            return 0.0
        options = _options(task, self.options)
        return float(_chosen(text, options) == _right_label(task, options))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is none of its options."""
        for task in tasks:
            _right_label(task, _options(task, self.options))


def _options(task: Task, column: str) -> Mapping[str, str]:
    """Texts by letter; letters without a text if the task has no column of options."""
    texts = task.columns.get(column)
    if texts is None:
        return dict.fromkeys(LETTERS, "")
    if isinstance(texts, Mapping):
        return {str(label).upper(): _plain(str(text)) for label, text in texts.items()}
    if not isinstance(texts, Sequence) or isinstance(texts, str) or len(texts) > len(LETTERS):
        raise ConfigError(
            f"tasks: {task.location or task.key}, column {column!r}: {str(texts)[:80]!r}."
            f" Allowed: a list of at most {len(LETTERS)} texts."
        )
    by_letter = zip(LETTERS, texts, strict=False)  # of the letters, as many as there are texts
    return {
        letter: _plain(re.sub(rf"^\(?{re.escape(letter)}[.:)] *", "", str(text)))
        for letter, text in by_letter
    }


def _right_label(task: Task, options: Mapping[str, str]) -> str:
    answer = task.reference_answer
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(options):
        return list(options)[answer]
    label = _chosen(reference_text(task), options)
    if not label:
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer {str(answer)[:80]!r} is none"
            f" of the options. Allowed: {', '.join(options)}, or an option's text."
        )
    return label


def _chosen(text: str, options: Mapping[str, str]) -> str:
    """The letter of the one option that the whole text is; "" if it is none."""
    text = strip_delimiters(text)
    match = LABEL.fullmatch(text.strip())
    label = match["label"].upper() if match else ""
    rest = _plain(match["rest"] or "") if match else ""
    if label in options and rest in ("", options[label]):
        return label
    labels = [label for label, option in options.items() if option and option == _plain(text)]
    return labels[0] if len(labels) == 1 else ""


def _plain(text: str) -> str:
    return " ".join(strip_delimiters(text).casefold().split())


@component
class NumberWithin(PerRolloutReward):
    r"""1 if the extracted answer is a number near the reference answer, else 0.

    Near is a difference of at most `absolute` or `relative` times the true number, whichever is
    more. The answer as a whole must be one number; a unit after it, a currency sign before it and
    commas between thousands are ignored, so that 50 % is 50. Words that change the number, such as
    "4 million", make it none.

    Args:
        relative: Largest difference, as a fraction of the true number.
        absolute: Largest difference.
        extract: Finds the answer in the rollout's text; no answer is wrong.

    >>> from grupo.core.types import Response
    >>> texts = (r"\boxed{1,010 km}", "1020", "990 to 1010", "nan")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> NumberWithin(relative=0.01)(Task("k", "?", "1000 m"), rollouts)
    [1.0, 0.0, 0.0, 0.0]
    """

    relative: NonNegativeFloat = 0.0
    absolute: NonNegativeFloat = 0.0
    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None or len(text) > MAX_CHARS:
            return 0.0
        number, truth = parse_number(text), _true_number(task)
        tolerance = max(self.absolute, self.relative * abs(truth))
        return float(abs(number - truth) <= tolerance * (1 + 1e-9))  # of rounded decimals

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no number."""
        for task in tasks:
            _true_number(task)


def _true_number(task: Task) -> float:
    truth = parse_number(reference_text(task))
    if not math.isfinite(truth):
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer"
            f" {str(task.reference_answer)[:80]!r}. Allowed: a number."
        )
    return truth


def parse_number(text: str) -> float:
    """The number that the whole text is, without its unit; NaN if it is none.

    >>> parse_number("$1,250.50"), parse_number("-3e2 m/s"), parse_number("4 million")
    (1250.5, -300.0, nan)
    """
    plain = strip_delimiters(text).replace("−", "-").replace(r"\%", "%")  # noqa: RUF001
    match = NUMBER.fullmatch(plain.strip())
    if match is None or CHANGES_NUMBER.search(match["unit"] or ""):
        return math.nan
    digits = match["digits"].replace(",", "")
    number = float(f"{match['sign']}{digits}{match['exponent'] or ''}")
    return number if math.isfinite(number) else math.nan
