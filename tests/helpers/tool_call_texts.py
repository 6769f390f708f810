"""Tool calls as the policies of each format write them: the other direction of the parsers."""

import json

from grupo.core.call_markers import DEEPSEEK

START, MESSAGE, CALL = "<|start|>", "<|message|>", "<|call|>"
CALLS, CALLS_END, CALL_TOKEN, CALL_END, SEPARATOR = DEEPSEEK


def _python_call(name, arguments):
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def _qwen3_coder_call(name, arguments):
    values = (f"<parameter={k}>\n{_text(v)}\n</parameter>\n" for k, v in arguments.items())
    return f"<tool_call>\n<function={name}>\n{''.join(values)}</function>\n</tool_call>"


def _glm_call(name, arguments):
    pairs = (
        f"<arg_key>{key}</arg_key>\n<arg_value>{_text(value)}</arg_value>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{''.join(pairs)}</tool_call>"


def functiongemma_value(value):
    """A value in FunctionGemma's notation."""
    match value:
        case str():
            return f"<escape>{value}<escape>"
        case list():
            return f"[{','.join(map(functiongemma_value, value))}]"
        case dict():
            pairs = (
                f"{key if key == key.strip() else functiongemma_value(key)}:"
                f"{functiongemma_value(inner)}"
                for key, inner in value.items()
            )
            return f"{{{','.join(pairs)}}}"
        case bool():
            return str(value).lower()
    return str(value)


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
        "qwen3_coder": _qwen3_coder_call,
        "glm": _glm_call,
        "deepseek": lambda name, arguments: (
            f"{CALL_TOKEN}{name}{SEPARATOR}{json.dumps(arguments)}{CALL_END}"
        ),
        "functiongemma": lambda name, arguments: (
            f"<start_function_call>call:{name}{functiongemma_value(arguments)}<end_function_call>"
        ),
        "phi4_mini": lambda name, arguments: json.dumps({"name": name, "arguments": arguments}),
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
        case "deepseek":
            return f"{CALLS}{''.join(written)}{CALLS_END}"
        case "functiongemma":
            return "".join(written)
        case "phi4_mini":
            return f"<|tool_call|>[{', '.join(written)}]<|/tool_call|>"
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
    "qwen3_coder": (
        "<tool_call>\n<function=add>\n<parameter=a>\n1\n</function>\n</tool_call>",
        "'<parameter=a>\\n1\\n</function>\\n</tool_call>' is no argument and no end",
    ),
    "glm": (
        "<tool_call>add\n<arg_key>a</arg_key>\n1\n</tool_call>",
        "'<arg_key>a</arg_key>\\n1\\n</tool_call>' is no argument and no end of a",
    ),
    "deepseek": (
        f"{CALLS}{CALL_TOKEN}add{SEPARATOR}{{a: 1}}{CALL_END}{CALLS_END}",
        "not JSON: Expecting property name",
    ),
    "functiongemma": (
        "<start_function_call>call:add{a:}<end_function_call>",
        "not JSON: Expecting value",
    ),
    "phi4_mini": (
        '<|tool_call|>[{"name": "add", }]<|/tool_call|>',
        "not JSON: Expecting property name",
    ),
    "react": ("Action: add\nObservation:", "the line Action Input follows Action"),
}
