"""Chat templates as families of models have them, and a tokenizer of characters for each."""

from grupo.models.chat_tokenizer import ChatTokenizer
from tests.helpers.tiny_lm import tokenizer

CHATML = (  # Qwen: what tools say is a user's message
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
GEMMA = (  # roles take turns, and tools are none
    "<bos>{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
# a family's template, its special tokens, the end of its answers first, and the roles of a world
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


def language(family: str) -> ChatTokenizer:
    """A tokenizer that has the family's template and special tokens."""
    template, special, _ = FAMILIES[family]
    known = tokenizer(chat_template=template, additional_special_tokens=list(special))
    end = known.convert_tokens_to_ids(special[0])
    assert isinstance(end, int)
    return ChatTokenizer(known, eos_token_ids=(end, 0), apply_chat_template=True)
