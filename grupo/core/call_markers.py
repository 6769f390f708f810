"""Special tokens that structure tool calls; the texts of responses keep them.

A tokenizer drops special tokens from a text. A parser of tool calls needs some of them, so a text
keeps the tokens of each set whose first token is special in the tokenizer.
"""

HERMES = ("<tool_call>", "</tool_call>")
LLAMA = ("<|python_tag|>",)
PYTHONIC = ("<|python_start|>", "<|python_end|>")
MISTRAL = ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")
HARMONY = ("<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|start|>", "<|end|>")
GLM = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
DEEPSEEK = tuple(
    f"<\uff5ctool\u2581{word}\uff5c>"  # a wide bar, and the underscore of SentencePiece
    for word in ("calls\u2581begin", "calls\u2581end", "call\u2581begin", "call\u2581end", "sep")
)
FUNCTIONGEMMA = (
    *("<start_function_call>", "<end_function_call>", "<escape>", "<start_function_response>"),
)
PHI4_MINI = ("<|tool_call|>", "<|/tool_call|>")

CALL_MARKERS = (
    *(HERMES, LLAMA, PYTHONIC, MISTRAL, HARMONY, GLM, DEEPSEEK, FUNCTIONGEMMA, PHI4_MINI),
)


def kept_markers(special_tokens: frozenset[str]) -> frozenset[str]:
    """The special tokens of a tokenizer that texts keep.

    >>> sorted(kept_markers(frozenset({"</s>", "[TOOL_CALLS]", "[ARGS]", "<|end|>"})))
    ['[ARGS]', '[TOOL_CALLS]']
    """
    kept = {token for markers in CALL_MARKERS if markers[0] in special_tokens for token in markers}
    return special_tokens & kept
