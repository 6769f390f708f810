"""Answers of FunctionGemma as messages."""

import re
from typing import Any

from grupo.core.call_markers import FUNCTIONGEMMA

CALL, CALL_END, _, _ = FUNCTIONGEMMA
REST_OF_CALL = re.compile(
    rf"call:(?P<name>[^\s{{}}]+)\{{(?P<arguments>.*)\}}{CALL_END}\s*", re.DOTALL
)


def functiongemma_message(text: str) -> dict[str, Any]:
    """An answer as a message, whose calls have their arguments as the policy wrote them.

    The chat template ends a turn after a text, but not after a call: the result continues it. A
    malformed call stays in the text.

    >>> message = functiongemma_message(f"Yes.{CALL}call:add{{a:1}}{CALL_END}")
    >>> message["content"], message["tool_calls"][0]["function"]
    ('Yes.', {'name': 'add', 'arguments': 'a:1'})
    """
    content, *pieces = text.split(CALL)
    calls = [match for piece in pieces if (match := REST_OF_CALL.fullmatch(piece))]
    if len(calls) < len(pieces) or not pieces:
        return {"role": "assistant", "content": text}
    functions = [{"type": "function", "function": match.groupdict()} for match in calls]
    return {"role": "assistant", "content": content, "tool_calls": functions}
