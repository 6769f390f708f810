"""Answer options in a prompt: lines such as "A) Lima", in another order, and which one is named."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

OPTION = re.compile(r"(\s*\(?([A-Z])[).:]\s+)(\S.*?)\s*")
LETTER = re.compile(r"\W*([A-Z])(?:[).:\]}*].*|\W*)", re.DOTALL)
NAMED = re.compile(r"\b(?:answer|option|choice)(?:\s+is)?\W{0,3}([A-Z])\b")


@dataclass(frozen=True)
class AnswerOptions:
    """The options of a prompt, and the text around them.

    Args:
        before: The lines before the options.
        marks: The beginning of each option's line, such as "A) ".
        contents: The text of each option.
        after: The lines after the options.
    """

    before: tuple[str, ...]
    marks: tuple[str, ...]
    contents: tuple[str, ...]
    after: tuple[str, ...] = ()

    def text(self, order: Sequence[int]) -> str:
        """The prompt with option `order[i]` in place i; the letters stay where they are.

        >>> find_options("Capital of Peru?\\nA) Lima\\nB) Cusco").text((1, 0))
        'Capital of Peru?\\nA) Cusco\\nB) Lima'
        """
        pairs = zip(self.marks, order, strict=True)
        lines = (f"{mark}{self.contents[i]}" for mark, i in pairs)
        return "\n".join((*self.before, *lines, *self.after))

    def letter(self, index: int) -> str:
        """The letter of an option of the prompt as it is."""
        return chr(ord("A") + index)

    def named(self, answer: str, order: Sequence[int]) -> int | None:
        """The option that an answer to `text(order)` names; None if it names none, or several.

        A letter at the beginning counts first, then the text of an option, then a letter after
        "answer", "option" or "choice".

        >>> options = find_options("A. Lima\\nB. Cusco")
        >>> [options.named(x, (1, 0)) for x in ("B", "It is Cusco.", "the answer is A", "A town")]
        [0, 1, 1, None]
        """
        letter = LETTER.fullmatch(answer)
        if letter and letter[1] < self.letter(len(order)):
            return order[ord(letter[1]) - ord("A")]
        texts = [i for i, content in enumerate(self.contents) if _contains(answer, content)]
        longest = [i for i in texts if not any(self._is_part(i, j) for j in texts)]
        if longest:
            return longest[0] if len(longest) == 1 else None
        letters = {x for x in NAMED.findall(answer) if x < self.letter(len(order))}
        return order[ord(letters.pop()) - ord("A")] if len(letters) == 1 else None

    def _is_part(self, i: int, j: int) -> bool:
        """Whether option i is a part of another option j."""
        return i != j and _contains(self.contents[j], self.contents[i])


def find_options(text: str) -> AnswerOptions | None:
    """The last block of at least two lines that begin with A, B, …; None if there is none.

    >>> find_options("Which?\\n(A) red\\n(B) blue\\nAnswer:").contents
    ('red', 'blue')
    >>> find_options("A. Einstein was born in Ulm.") is None
    True
    """
    lines = text.split("\n")
    matches = [OPTION.fullmatch(line) for line in lines]
    for start in range(len(lines) - 2, -1, -1):
        found = list(takewhile(bool, matches[start:]))
        block = [m for i, m in enumerate(found) if m and ord(m[2]) == ord("A") + i]
        if len(block) >= 2 and len(block) == len(found):
            end = start + len(block)
            marks, contents = (tuple(m[group] for m in block) for group in (1, 3))
            return AnswerOptions(tuple(lines[:start]), marks, contents, tuple(lines[end:]))
    return None


def _contains(text: str, part: str) -> bool:
    """Whether a text contains a part as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None
