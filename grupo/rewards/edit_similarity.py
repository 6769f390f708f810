"""Similarities of texts by edit distance, for transcriptions and formulas."""

import re
from collections.abc import Callable

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.block_answer import edit_distance

MAX_CHARS = 4_000  # of an answer; the edit distance takes time in proportion to its square
LATEX_SPACES = re.compile(r"\\[,;:! ]|\\q?quad(?![A-Za-z])|~|\\(?:left|right)(?![A-Za-z])")
LATEX_DELIMITERS = re.compile(r"^(?:\$\$?|\\\[|\\\()|(?:\$\$?|\\\]|\\\))$")


def edit_similarity(text: str, truth: str) -> float:
    """1 - edit distance / length of the longer text; 1 for two empty texts.

    >>> round(edit_similarity("kitten", "sitting"), 3), edit_similarity("", "")
    (0.571, 1.0)
    """
    return 1 - edit_distance(text, truth) / max(len(text), len(truth), 1)


def single_spaces(text: str) -> str:
    r"""The text with single spaces for white space.

    >>> single_spaces(" a\n b ")
    'a b'
    """
    return " ".join(text.split())


def plain_latex(text: str) -> str:
    r"""LaTeX without delimiters of formulas, spaces, \left and \right; \dfrac is \frac.

    >>> plain_latex(r"$ \left( \dfrac{1}{2} \right) \, x $")
    '(\\frac{1}{2})x'
    """
    inside = LATEX_DELIMITERS.sub("", text.strip())
    inside = re.sub(r"\\[dt]frac(?![A-Za-z])", r"\\frac", inside)
    inside = LATEX_SPACES.sub("", inside)
    # A space between the name of a command and a letter stays.
    return re.sub(r"(\\[A-Za-z]+)?\s+", _kept_space, inside).strip()


def _kept_space(match: re.Match[str]) -> str:
    name = match[1] or ""
    return f"{name} " if name and match.string[match.end() :][:1].isalpha() else name


@component
class EditSimilarity(PerRolloutReward):
    """1 - edit distance / length of the longer one, of the answer and the reference answer.

    Args:
        extract: Finds the answer in the rollout's text; no answer scores 0.
        normalize: Applied to both texts before, such as `single_spaces` or `plain_latex`.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="kitten")),))
    >>> round(EditSimilarity().score(Task("k", "?", "sitting"), rollout), 3)
    0.571
    """

    extract: Extractor = whole_text
    normalize: Callable[[str], str] = single_spaces

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = self.extract(rollout.text)
        if answer is None or len(answer) > MAX_CHARS:
            return 0.0
        return edit_similarity(self.normalize(answer), self.normalize(reference_text(task)))
