"""The program of a math process: it reads pairs as lines of JSON and writes lines of JSON.

It runs as a script and imports nothing of grupo, so that it starts fast and stays small.
"""

import json
import logging
import re
import sys
from functools import lru_cache
from typing import Any

MEMORY_LIMIT = 4 << 30  # bytes of address space
DELIMITER_PATTERN = re.compile(r"\$|\\\(|\\\[|\\boxed")
PROSE_PATTERN = re.compile(r"(?<!\\)\b(?:[a-zA-Z]{3,}\b|[a-zA-Z]{2}\s)")


def parse_expression(text: str) -> list[Any]:
    r"""The last expression in a text, or the text itself as LaTeX if it is a bare expression.

    >>> texts = ("1/2", r"so it is $\frac{1}{2}$", "2*x**3")
    >>> [parse_expression(text)[0] for text in texts]
    [1/2, 1/2, 2*x**3]
    """
    from math_verify import parse

    bare = not DELIMITER_PATTERN.search(text) and not PROSE_PATTERN.search(text)
    latex = f"${text}$" if bare else text
    return parse(latex.replace("**", "^"), parsing_timeout=None)  # pyright: ignore


@lru_cache(maxsize=64)
def parse_reference_answer(reference_answer: str) -> list[Any]:
    """The reference answer as an expression; raises ValueError if it is none."""
    expression = parse_expression(reference_answer)
    if not expression:
        raise ValueError(f"the reference answer {reference_answer!r} is no expression")
    return expression


def compare(reference_answer: str, text: str) -> dict[str, Any]:
    """{"equal": bool}, or {"error": message} if the comparison failed."""
    from math_verify import verify

    try:
        expected = parse_reference_answer(reference_answer)
        return {"equal": verify(expected, parse_expression(text), timeout_seconds=None)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Compare pairs until the parent closes the pipe."""
    # prints of libraries must not be read as replies
    replies = sys.stdout
    sys.stdout = sys.stderr
    logging.disable()
    compare("1", "$1$")  # loads the slow imports
    _bound_memory()
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        pair = json.loads(line)
        _end_after(2 * pair["time_limit"] + 1)
        reply = compare(pair["reference_answer"], pair["text"])
        print(json.dumps(reply), file=replies, flush=True)
        _end_after(0)


def _bound_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def _end_after(seconds: float) -> None:
    """Kill this process after so many seconds (0: never), should the parent be gone by then."""
    if sys.platform != "win32":
        import signal

        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
