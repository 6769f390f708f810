"""Answers of the harmony format of gpt-oss, as messages for its chat template."""

import re
from typing import Any

CHANNEL, BODY, NEXT = "<|channel|>", "<|message|>", "<|start|>assistant"
END = "<|end|>"
_RECIPIENT = re.compile(r"to=functions\.([^\s<]+)")


def harmony_message(text: str) -> dict[str, Any]:
    """The message of an answer: its thoughts, its final text, and a call of a function.

    The arguments of a call stay the text that the policy generated.

    Args:
        text: The answer with its special tokens, from the first channel on.

    >>> thought = "<|channel|>analysis<|message|>Sum.<|end|>"
    >>> harmony_message(f"{thought}<|start|>assistant<|channel|>final<|message|>4")
    {'role': 'assistant', 'content': '4', 'thinking': 'Sum.'}
    """
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for part in text.split(NEXT):
        header, _, body = part.partition(BODY)
        body = body.removesuffix(END)
        recipient = _RECIPIENT.search(header)
        if recipient:
            function = {"name": recipient[1], "arguments": body}
            message["tool_calls"] = [{"type": "function", "function": function}]
        elif f"{CHANNEL}analysis" in header:
            message["thinking"] = message.get("thinking", "") + body
        else:
            message["content"] += body
    return message
