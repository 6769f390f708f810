"""Chat templates of policies that are not loaded yet: whether they describe tools."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import _get_template_variables

from grupo.models.causal_spec import CausalSpec
from grupo.models.chat_template import with_template_file
from grupo.models.loaded import LoadedModel
from grupo.models.loading import check_model_exists, load_tokenizer
from grupo.models.multi_policy_spec import MultiPolicy
from grupo.models.quiet_loading import quiet_transformers
from grupo.util.loader_errors import loader_errors

ANY_TOOL: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


class ToolTemplate(NamedTuple):
    """The chat template that a policy renders prompts with, if these have tools.

    Args:
        text: The template; "" if the tokenizer has none.
        is_applied: Plain prompts are wrapped as messages, and rendered by the template.
        describes_tools: The template reads descriptions of tools.
        stop_strings: Strings that end an answer of the policy.
    """

    text: str = ""
    is_applied: bool = False
    describes_tools: bool = False
    stop_strings: tuple[str, ...] = ()


def read_tool_templates(policy: object) -> Sequence[ToolTemplate]:
    """The templates of a policy specification, several for several policies.

    A policy that is no autoregressive language model has none.

    Raises:
        ConfigError: Files of the model are missing or malformed.
    """
    return list(_templates(policy))


def _templates(policy: object) -> Iterator[ToolTemplate]:
    if isinstance(policy, MultiPolicy):
        for spec in (policy.main_policy, *(role.policy for role in policy.roles)):
            yield from _templates(spec)
    if isinstance(policy, CausalSpec):
        tokenizer = with_template_file(_tokenizer(policy), policy.chat_template)
        yield tool_template(tokenizer)._replace(
            is_applied=policy.apply_chat_template, stop_strings=policy.stop_strings
        )


def tool_template(tokenizer: PreTrainedTokenizerBase) -> ToolTemplate:
    """The template of a tokenizer for prompts with tools.

    Raises:
        ConfigError: The template is no Jinja text.
    """
    text = tokenizer.get_chat_template(tools=ANY_TOOL) if tokenizer.chat_template else ""
    with loader_errors("chat_template"):
        reads_tools = "tools" in _get_template_variables(text)
    return ToolTemplate(text, describes_tools=reads_tools)


def _tokenizer(spec: CausalSpec) -> PreTrainedTokenizerBase:
    if isinstance(spec.model, LoadedModel):
        return spec.model.tokenizer
    check_model_exists(spec.model)
    with loader_errors(f"model: {spec.model!r}"), quiet_transformers():
        return load_tokenizer(spec.model)
