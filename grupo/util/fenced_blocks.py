r"""Fenced blocks of Markdown: ```python, lines, and ``` on a line of its own."""

from collections.abc import Collection

FENCE = "```"


def fenced_blocks(text: str, languages: Collection[str]) -> list[str]:
    r"""The contents of the blocks without a language or with one of `languages`, in linear time.

    A fence begins its line. A block that does not end is none, and neither is what follows it.

    Args:
        text: The text.
        languages: The names that may follow the first fence.

    >>> fenced_blocks("So:\n```python\nprint(1)\n```\n```c\nint x;\n```\n", ("python", "py"))
    ['print(1)\n']
    """
    openings = {FENCE, *(FENCE + language for language in languages)}
    blocks, content = list[str](), None
    for line in text.split("\n"):
        fence = line.rstrip(" \t") if line.startswith(FENCE) else ""
        if content is None:
            content = [] if fence in openings else None
        elif fence == FENCE:
            blocks.append("".join(content))
            content = None
        else:
            content.append(f"{line}\n")
    return blocks
