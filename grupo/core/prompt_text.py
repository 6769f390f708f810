"""Text that is added to a prompt, which is a text or a chat."""

from grupo.core.message_content import append_to, content_text, has_text_or_parts, prepend_to
from grupo.core.types import Observation


def prompt_as_text(prompt: Observation) -> str:
    """The prompt as text: the contents of a chat, one paragraph each.

    >>> chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"})
    >>> prompt_as_text(chat)
    'Be brief.\\n\\n?'
    """
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(content_text(message["content"]) for message in prompt)


def append_text(prompt: Observation, text: str) -> Observation:
    """The prompt with text at its end, in the user's message where it is a chat.

    >>> append_text("1 + 1 =", " (count!)")
    '1 + 1 = (count!)'
    >>> append_text(({"role": "user", "content": "1 + 1 ="},), " (count!)")
    ({'role': 'user', 'content': '1 + 1 = (count!)'},)
    """
    if isinstance(prompt, str):
        return prompt + text
    *before, last = prompt
    if last.get("role") == "user" and has_text_or_parts(last):
        return (*before, {**last, "content": append_to(last["content"], text)})
    return (*prompt, {"role": "user", "content": text.strip()})


def prepend_text(text: str, prompt: Observation) -> Observation:
    """The prompt with text at its beginning, in the first user's message where it is a chat.

    >>> prepend_text("Think. ", "1 + 1 =")
    'Think. 1 + 1 ='
    >>> chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1 ="})
    >>> prepend_text("Think. ", chat)[1]
    {'role': 'user', 'content': 'Think. 1 + 1 ='}
    """
    if isinstance(prompt, str):
        return text + prompt
    for index, message in enumerate(prompt):
        if message.get("role") == "user" and has_text_or_parts(message):
            changed = {**message, "content": prepend_to(text, message["content"])}
            return (*prompt[:index], changed, *prompt[index + 1 :])
    return ({"role": "user", "content": text.strip()}, *prompt)
