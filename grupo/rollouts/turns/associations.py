"""Associations: texts that a tree search adds to a partial answer, such as a fact in a file."""

import re
from typing import NamedTuple, Protocol

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.protocols import implemented_in
from grupo.core.ranges import PositiveInt

__all__ = ["Associate", "Association", "LookUp", "no_association"]

WORD = re.compile(r"\w+")


class Association(NamedTuple):
    """A text that is added after a step of an answer.

    Args:
        text: The text; "" if nothing was found.
        quality: How well the text fits the step, in [0, 1].
    """

    text: str = ""
    quality: float = 0.0


@implemented_in("grupo.rollouts.turns.associations")
class Associate(Protocol):
    """Finds a text to add after a step of an answer."""

    def __call__(self, step: str, known: str, /) -> Association:
        """The association of a step; its text is "" if nothing is found.

        Args:
            step: Text of the step.
            known: The task and the answer so far. A text in `known` is not added again.
        """
        ...


@implemented_in("grupo.envs.tools.keyword_search")
class SearchTool(Protocol):
    """A tool that returns the documents that match a query, one on each line, best first."""

    def __call__(self, query: str, /) -> str: ...


def no_association(step: str, known: str) -> Association:
    """The association of a strategy that adds no texts."""
    return Association()


@component
class LookUp:
    """The best document that a search finds for a step and that the answer does not have yet.

    The quality of a document is the share of the step's words that the document contains. A
    document with none of these words is not added.

    Args:
        search: Returns documents, one on each line, best first.
        form: The text that is added, with {document}.
        max_words: Largest number of words of a document that are added.

    Raises:
        ConfigError: The form lacks {document}.
    """

    search: SearchTool
    form: str = "({document})\n"
    max_words: PositiveInt = 40

    def __post_init__(self) -> None:
        check_form("LookUp.form", self.form, ("document",))

    def __call__(self, step: str, known: str) -> Association:
        for line in self.search(step).splitlines():
            document = " ".join(line.split()[: self.max_words])
            quality = shared_words(step, document)
            if quality and document not in known:
                return Association(fill(self.form, {"document": document}), quality)
        return Association()


def shared_words(step: str, document: str) -> float:
    """The share of the step's different words that the document contains, in [0, 1].

    It is 0 for a step without words.

    >>> shared_words("capital of Peru?", "Lima is the capital of Peru")
    1.0
    >>> shared_words("?", "Lima")
    0.0
    """
    words = set(WORD.findall(step.lower()))
    return len(words & set(WORD.findall(document.lower()))) / len(words) if words else 0.0
