"""Chat templates of model families, and a character tokenizer for each."""

from grupo.models.chat_tokenizer import ChatTokenizer
from tests.helpers.tiny_lm import tokenizer

CHATML = (  # Qwen: a tool's result is a user message
    "{% for m in messages %}"
    "{% if m.role == 'tool' %}"
    "<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "<|begin_of_text|>{% for m in messages %}"
    "{% set role = 'ipython' if m.role == 'tool' else m.role %}"
    "<|start_header_id|>{{ role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MISTRAL = (
    "<s>{% for m in messages %}"
    "{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]"
    "{% elif m.role == 'tool' %}[TOOL_RESULTS] {{ m.content }}[/TOOL_RESULTS]"
    "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)
GEMMA = (  # roles must alternate, and there is no role for tools
    "<bos>{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
# template, special tokens (the end token first) and roles of an environment
FAMILIES = {
    "chatml": (CHATML, ("<|im_end|>", "<|im_start|>"), ("tool", "user")),
    "llama3": (
        LLAMA3,
        ("<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
        ("tool", "user"),
    ),
    "mistral": (
        MISTRAL,
        ("</s>", "<s>", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        ("tool", "user"),
    ),
    "gemma": (GEMMA, ("<end_of_turn>", "<bos>", "<start_of_turn>"), ("user",)),
}
CASES = [(name, role) for name, (_, _, roles) in FAMILIES.items() for role in roles]


def make_chat_tokenizer(family: str) -> ChatTokenizer:
    """A tokenizer with the family's template and special tokens."""
    template, special, _ = FAMILIES[family]
    backend = tokenizer(chat_template=template, additional_special_tokens=list(special))
    end = backend.convert_tokens_to_ids(special[0])
    assert isinstance(end, int)
    return ChatTokenizer(backend, eos_token_ids=(end, 0), apply_chat_template=True)
