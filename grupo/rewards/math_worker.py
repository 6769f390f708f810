"""What runs in a process of `mathematics`: a line of JSON in, a line of JSON out.

It is run as a file of its own and imports nothing of ours, so that it starts soon and stays small.
"""

import json
import logging
import re
import sys
from functools import lru_cache
from typing import Any

MEMORY_LIMIT = 4 << 30  # bytes of addresses


DELIMITER_PATTERN = re.compile(r"\$|\\\(|\\\[|\\boxed")
PROSE_PATTERN = re.compile(r"(?<!\\)\b(?:[a-zA-Z]{3,}\b|[a-zA-Z]{2}\s)")


def parse_expression(text: str) -> list[Any]:
    r"""The expression that a text ends with, or that it is; a bare one is read as LaTeX.

    >>> parse_expression("1/2")[0], parse_expression(r"so it is $\frac{1}{2}$")[0], parse_expression("2*x**3")[0]
    (1/2, 1/2, 2*x**3)
    """
    from math_verify import parse

    bare = not DELIMITER_PATTERN.search(text) and not PROSE_PATTERN.search(text)
    written = f"${text}$" if bare else text
    return parse(written.replace("**", "^"), parsing_timeout=None)  # pyright: ignore


@lru_cache(maxsize=64)
def parse_reference_answer(reference_answer: str) -> list[Any]:
    """The right answer as an expression."""
    found = parse_expression(reference_answer)
    if not found:
        raise ValueError(f"the answer {reference_answer!r} does not read as mathematics")
    return found


def compare(reference_answer: str, text: str) -> dict[str, Any]:
    """Whether they are the same, or what went wrong."""
    from math_verify import verify

    try:
        return {
            "same": verify(
                parse_reference_answer(reference_answer),
                parse_expression(text),
                timeout_seconds=None,
            )
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Compare pairs until the parent closes the pipe."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    logging.disable()
    compare("1", "$1$")  # imports what is slow to import
    _bound_memory()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        pair = json.loads(line)
        _end_after(2 * pair["time_limit"] + 1)
        print(json.dumps(compare(pair["answer"], pair["text"])), file=answers, flush=True)
        _end_after(0)


def _bound_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def _end_after(seconds: float) -> None:
    """Should the parent be gone, nobody else would end a comparison that hangs."""
    if sys.platform != "win32":
        import signal

        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
