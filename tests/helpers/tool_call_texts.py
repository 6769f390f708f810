"""Tool calls as the policies of each format write them: the other direction of the parsers."""

import json

START, MESSAGE, CALL = "<|start|>", "<|message|>", "<|call|>"


def _python_call(name, arguments):
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def write_call(format_name, name, **arguments):
    """A turn of the policy that calls one tool."""
    return write_calls(format_name, (name, arguments))


def write_calls(format_name, *calls):
    """A turn of the policy that calls these tools: pairs of a name and arguments."""
    write = {
        "hermes": lambda name, arguments: (
            f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
        ),
        "llama": lambda name, arguments: json.dumps({"name": name, "parameters": arguments}),
        "pythonic": _python_call,
        "mistral": lambda name, arguments: f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments)}",
        "gemma": _python_call,
        "harmony": lambda name, arguments: (
            f"<|channel|>commentary to=functions.{name} <|constrain|>json"
            f"{MESSAGE}{json.dumps(arguments)}{CALL}"
        ),
        "react": lambda name, arguments: f"Action: {name}\nAction Input: {json.dumps(arguments)}\n",
    }[format_name]
    written = [write(*call) for call in calls]
    match format_name:
        case "llama":
            return "; ".join(written)
        case "pythonic":
            return f"[{', '.join(written)}]"
        case "gemma":
            return "\n".join(("```tool_code", *written, "```"))
        case "harmony":
            return f"{START}assistant".join(written)
        case "react":
            return f"Thought: I look.\n{''.join(written)}Observation:"
    return "\n".join(written)


def with_thoughts(format_name, text, thoughts="I should look."):
    """The turn after thoughts, where the format has a place for them."""
    match format_name:
        case "harmony":
            return f"<|channel|>analysis{MESSAGE}{thoughts}<|end|>{START}assistant{text}"
        case "llama" | "pythonic" | "react":
            return text
    return f"{thoughts}\n{text}"


# a turn of each format that is meant to be a call and cannot be read, and the reason
MALFORMED = {
    "hermes": ('<tool_call>{"name": "add", </tool_call>', "not JSON: Expecting property name"),
    "llama": ('{"name": "add", "parameters": {"a": 1}', "not JSON: Expecting ',' delimiter"),
    "pythonic": ("[add(1)]", "add(1) has an argument without a name"),
    "mistral": ("[TOOL_CALLS]add[ARGS]{a: 1}", "not JSON: Expecting property name"),
    "gemma": ("```tool_code\nadd(a=1", "a block of code ends with ```"),
    "harmony": (
        f'<|channel|>commentary to=functions.add{MESSAGE}{{"a": 1}}<|end|>',
        "a call ends with <|call|>",
    ),
    "react": ("Action: add\nObservation:", "the line Action Input follows Action"),
}
