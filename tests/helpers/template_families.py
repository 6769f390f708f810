"""Chat templates of families in their published form, with a tokenizer of characters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from grupo.core.call_markers import DEEPSEEK, FUNCTIONGEMMA, GLM
from grupo.models.chat_tokenizer import ChatTokenizer
from tests.helpers.tiny_lm import tokenizer

FOLDER = Path(__file__).parent / "chat_templates"


@dataclass(frozen=True)
class Family:
    """A family of models.

    Args:
        special: Special tokens of the template; the first ones end an answer.
        ends: Number of them that end an answer.
        options: Further options of the tokenizer.
    """

    special: tuple[str, ...]
    ends: int = 1
    options: tuple[tuple[str, str], ...] = ()


DEEPSEEK_V3 = Family(
    (
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "<\uff5cUser\uff5c>",
        "<\uff5cAssistant\uff5c>",
        *DEEPSEEK,
    ),
    options=(("bos_token", "<\uff5cbegin\u2581of\u2581sentence\uff5c>"),),
)
CHATML = Family(("<|im_end|>", "<|im_start|>"))
FAMILIES = {
    "qwen2_5": CHATML,
    "qwen3": CHATML,
    "llama3": Family(
        ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"),
        options=(("bos_token", "<|begin_of_text|>"),),
    ),
    "gemma3": Family(("<end_of_turn>", "<start_of_turn>"), options=(("bos_token", "<bos>"),)),
    "mistral": Family(
        (
            *("</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
            *("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        ),
        options=(("bos_token", "<s>"), ("eos_token", "</s>")),
    ),
    "phi4": Family(("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|/tool|>")),
    "smollm3": CHATML,
    "qwen3_coder": CHATML,
    "glm4": Family(
        (
            *("<|user|>", "<|observation|>", "<|assistant|>", "<|system|>", "[gMASK]", "<sop>"),
            *("<tool_call>", "</tool_call>", *GLM),
        ),
        ends=2,
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v31": DEEPSEEK_V3,
    "functiongemma": Family(
        ("<end_of_turn>", "<start_function_response>", "<start_of_turn>", *FUNCTIONGEMMA[:3]),
        ends=2,
        options=(("bos_token", "<bos>"),),
    ),
    "gpt_oss": Family(
        ("<|return|>", "<|call|>", "<|end|>", "<|start|>", "<|channel|>", "<|message|>"), ends=2
    ),
}


def template(name: str) -> str:
    """The template of a family."""
    return (FOLDER / f"{name}.jinja").read_text()


def tokenizer_options(name: str) -> dict[str, Any]:
    """Options of the tokenizer of `tests.helpers.tiny_lm` for a family."""
    family = FAMILIES[name]
    special = [token for token in family.special if token not in dict(family.options).values()]
    return {
        "chat_template": template(name),
        "additional_special_tokens": special,
        **dict(family.options),
    }


def family_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """A tokenizer of characters and of the family's special tokens."""
    return tokenizer(**tokenizer_options(name))


def family_chat_tokenizer(name: str, **fields: Any) -> ChatTokenizer:
    """The chat tokenizer of a family."""
    family = FAMILIES[name]
    backend = family_tokenizer(name)
    ends = [backend.convert_tokens_to_ids(token) for token in family.special[: family.ends]]
    return ChatTokenizer(backend, tuple(ends), **fields)
