"""Extractors: functions from the policy's text to its answer, or None if it has none."""

import re
from typing import Protocol

from grupo.core.component import component
from grupo.core.protocols import implemented_in
from grupo.util.fenced_blocks import FENCE, fenced_blocks

__all__ = [
    "AfterMarker",
    "AfterThinking",
    "Extractor",
    "FirstInsideTag",
    "InsideTag",
    "InsideTagOrWhole",
    "LastBlock",
    "answer_after_thoughts",
    "final_answer",
    "last_boxed",
    "whole_text",
]
THOUGHTS_END = re.compile(r"</think>\s*<answer>")


@implemented_in("grupo.core.extract_answer")
class Extractor(Protocol):
    """Finds the policy's answer in its text."""

    def __call__(self, text: str, /) -> str | None:
        """The answer; None if the text has none."""
        ...


def whole_text(text: str) -> str | None:
    """The whole text, stripped.

    >>> whole_text(" 4 ")
    '4'
    """
    return text.strip()


@component
class AfterMarker:
    """The text after the last occurrence of a marker.

    Args:
        marker: The text that precedes the answer.

    >>> AfterMarker("####")("#### 3, no: #### 4")
    '4'
    """

    marker: str

    def __call__(self, text: str) -> str | None:
        _, marker, answer = text.rpartition(self.marker)
        return answer.strip() if marker else None


@component
class InsideTag:
    """The text inside the last <tag>…</tag>.

    Args:
        tag: Name of the tag, without brackets.

    >>> InsideTag("answer")("<think>3?</think> <answer> 4 </answer>")
    '4'
    """

    tag: str

    def __call__(self, text: str) -> str | None:
        before, close_tag, _ = text.rpartition(f"</{self.tag}>")
        _, open_tag, answer = before.rpartition(f"<{self.tag}>")
        return answer.strip() if open_tag and close_tag else None


@component
class LastBlock:
    r"""The content of the last fenced block of Markdown.

    Args:
        languages: Names that may follow the first fence, besides none; (): any name.

    >>> LastBlock(("lp",))("So:\n```lp\nend\n```\n")
    'end\n'
    """

    languages: tuple[str, ...] = ()

    def __call__(self, text: str) -> str | None:
        names = self.languages or _fence_names(text)
        blocks = fenced_blocks(text, names)
        return blocks[-1] if blocks else None


def _fence_names(text: str) -> list[str]:
    """Text after each fence of a text."""
    lines = (line for line in text.split("\n") if line.startswith(FENCE))
    return [line.removeprefix(FENCE).rstrip(" \t") for line in lines]


@component
class FirstInsideTag:
    """The text inside the first <tag>…</tag>; `InsideTag` finds the last one.

    Args:
        tag: Name of the tag, without brackets.

    >>> FirstInsideTag("answer")("<answer> 3 </answer>, no: <answer>4</answer>")
    '3'
    """

    tag: str

    def __call__(self, text: str) -> str | None:
        _, open_tag, after = text.partition(f"<{self.tag}>")
        answer, close_tag, _ = after.partition(f"</{self.tag}>")
        return answer.strip() if open_tag and close_tag else None


@component
class InsideTagOrWhole:
    """The text inside the first <tag>…</tag>, or the whole text if there is none.

    Args:
        tag: Name of the tag, without brackets.

    >>> InsideTagOrWhole("answer")("<answer> 4 </answer>"), InsideTagOrWhole("answer")(" 4 ")
    ('4', '4')
    """

    tag: str

    def __call__(self, text: str) -> str | None:
        inside = FirstInsideTag(self.tag)(text)
        return text.strip() if inside is None else inside


def is_thoughts_then_answer(text: str) -> bool:
    """True if the whole text is <think>…</think><answer>…</answer>, in time linear in the text.

    >>> is_thoughts_then_answer("<think>2 + 2</think>\\n<answer>4</answer>")
    True
    >>> is_thoughts_then_answer("<think>2 + 2</think> so <answer>4</answer>")
    False
    """
    if not text.startswith("<think>") or not text.endswith("</answer>"):
        return False
    inside = text.removeprefix("<think>").removesuffix("</answer>")
    return THOUGHTS_END.search(inside) is not None


def answer_after_thoughts(text: str) -> str | None:
    """The text inside <answer>, if the whole text is <think>…</think><answer>…</answer>.

    >>> answer_after_thoughts("<think>2 + 2</think> <answer> 4 </answer>")
    '4'
    >>> answer_after_thoughts("<answer>4</answer>") is None
    True
    """
    return InsideTag("answer")(text) if is_thoughts_then_answer(text.strip()) else None


def last_boxed(text: str) -> str | None:
    r"""The text inside the braces of the last \boxed{…}.

    >>> last_boxed(r"\boxed{1}, so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """
    _, marker, after = text.rpartition(r"\boxed{")
    depth = 1
    for brace in re.finditer(r"[{}]", after if marker else ""):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return after[: brace.start()].strip()
    return None


@component
class AfterThinking:
    r"""The answer in the text after the thoughts: thoughts are no answer.

    A text in which the thoughts do not end has no answer; a text without thoughts is searched as a
    whole.

    Args:
        extract: Finds the answer in the text after the thoughts.
        tag: Name of the tag around the thoughts, without brackets.

    >>> AfterThinking(last_boxed)(r"<think>\boxed{3}</think> \boxed{4}")
    '4'
    """

    extract: Extractor
    tag: str = "think"

    def __call__(self, text: str) -> str | None:
        _, close_tag, after = text.rpartition(f"</{self.tag}>")
        if f"<{self.tag}>" in (after if close_tag else text):
            return None
        return self.extract(after)


def _boxed_or_whole(text: str) -> str | None:
    return last_boxed(text) if r"\boxed" in text else whole_text(text)


_after_thinking = AfterThinking(_boxed_or_whole)


def final_answer(text: str) -> str | None:
    r"""The text inside the last \boxed{…} after the thoughts, or the whole text if it has none.

    >>> final_answer(r"so it is \boxed{4}."), final_answer("4"), final_answer(r"4 \boxed{")
    ('4', '4', None)
    """
    return _after_thinking(text)
