"""Where in a text its answer is: functions from text to the answer, or None where there is none."""

import re
from collections.abc import Callable

from grupo.core.component import component

Extractor = Callable[[str], str | None]


def whole_text(text: str) -> str | None:
    """All of it.

    >>> whole_text(" 4 ")
    '4'
    """
    return text.strip()


@component
class AfterMarker:
    """What follows the last `marker`.

    >>> AfterMarker("####")("#### 3, no: #### 4")
    '4'
    """

    marker: str

    def __call__(self, text: str) -> str | None:
        _, found, answer = text.rpartition(self.marker)
        return answer.strip() if found else None


@component
class InsideTag:
    """What is inside the last <tag>…</tag>.

    >>> InsideTag("answer")("<think>3?</think> <answer> 4 </answer>")
    '4'
    """

    tag: str

    def __call__(self, text: str) -> str | None:
        before, closed, _ = text.rpartition(f"</{self.tag}>")
        _, opened, answer = before.rpartition(f"<{self.tag}>")
        return answer.strip() if opened and closed else None


def last_boxed(text: str) -> str | None:
    r"""What is inside the braces of the last \boxed{…}.

    >>> last_boxed(r"\boxed{1}, so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """
    _, found, after = text.rpartition(r"\boxed{")
    depth = 1
    for brace in re.finditer(r"[{}]", after if found else ""):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return after[: brace.start()].strip()
    return None
