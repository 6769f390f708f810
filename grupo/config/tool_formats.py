"""How the policy of a recipe writes tool calls: chosen by its chat template before a run begins."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grupo.core.component import map_components, walk
from grupo.envs import MultiTurn
from grupo.envs.tools import ParsedCalls, Toolbox
from grupo.envs.tools.formats import FORMATS, ToolFormat, format_named, format_of_template
from grupo.models.tool_templates import ToolTemplate, read_tool_templates
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError


def with_tool_formats(recipe: Recipe) -> Recipe:
    """The recipe with values for the fields of its toolboxes that are "auto".

    The format is that of the policy's chat template, or Hermes' if the template is of none. The
    template describes the tools if it can, and prompts are rendered by it. Otherwise the prompt
    describes them; results are then messages of the user, unless `MultiTurn` names another role.

    Raises:
        ConfigError: A toolbox has a format that the policy cannot follow, or files of its model are
            missing.
    """
    if not any(isinstance(part, Toolbox | ParsedCalls) for part in walk(recipe.env)):
        return recipe
    templates = read_tool_templates(recipe.policy)
    resolve = partial(_resolved, _common_format(templates), templates)
    return recipe.replace(env=map_components(recipe.env, resolve))


def tool_notes(recipe: Recipe) -> Iterator[str]:
    """A line for each toolbox of a recipe: how calls are written, and what describes the tools."""
    for part in walk(recipe.env):
        if isinstance(part, Toolbox):
            source = "the chat template" if part.uses_template else "the prompt"
            yield f"tools: calls in the format {part.tool_format.name!r}, described by {source}"


def _common_format(templates: Sequence[ToolTemplate]) -> ToolFormat | None:
    """The format of the policies' templates; None for policies without."""
    formats = {tool_format: None for t in templates if (tool_format := format_of_template(t.text))}
    if len(formats) > 1:
        names = ", ".join(tool_format.name for tool_format in formats)
        raise ConfigError(
            f"format: 'auto', and the policies' chat templates use {names}. Allowed: the name of"
            f" one format for all of them: {', '.join(sorted(FORMATS))}."
        )
    return next(iter(formats), None)


def _resolved(own: ToolFormat | None, templates: Sequence[ToolTemplate], part: Any) -> Any:
    """A component with values in place of "auto"; `own` is the format of the templates."""
    if isinstance(part, Toolbox | ParsedCalls) and part.format == "auto":
        part = replace(part, format=(own or format_named("auto")).name)
    if isinstance(part, Toolbox):
        return _described(part, own, templates)
    if isinstance(part, MultiTurn) and isinstance(part.env_factory, Toolbox) and not part.role:
        toolbox = part.env_factory
        in_chat = any(template.is_applied for template in templates)
        if in_chat and not toolbox.uses_template and not toolbox.stop_strings:
            return replace(part, role="user")
    return part


def _described(
    toolbox: Toolbox, own: ToolFormat | None, templates: Sequence[ToolTemplate]
) -> Toolbox:
    """A toolbox with a format, and with a value in place of "auto" in `described_by`."""
    can_describe = bool(templates) and all(template.describes_tools for template in templates)
    if toolbox.described_by == "auto":
        is_own = can_describe and own == toolbox.tool_format
        can_describe &= is_own
        has_prompt = bool(toolbox.tool_format.prompt)
        applied = is_own and all(template.is_applied for template in templates)
        described_by = "prompt" if has_prompt and not applied else "template"
        toolbox = replace(toolbox, described_by=described_by)
    if toolbox.uses_template and not can_describe:
        allowed = ", ".join(sorted(name for name, f in FORMATS.items() if f.prompt))
        raise ConfigError(
            f"format: {toolbox.format!r}, and the policy's chat template describes no tools in it."
            f" Allowed: 'auto'; or, with described_by='prompt', one of {allowed}."
        )
    _check_stop_strings(toolbox, templates)
    return toolbox


def _check_stop_strings(toolbox: Toolbox, templates: Sequence[ToolTemplate]) -> None:
    """Raise `ConfigError` if a policy would write on where it has to wait for a result."""
    for template in templates:
        for stop in toolbox.stop_strings:
            if stop not in template.stop_strings:
                raise ConfigError(
                    f"policy.stop_strings: {template.stop_strings!r}, and in the format"
                    f" {toolbox.format!r} the policy would write results itself. Allowed: with"
                    f" {stop!r} among them."
                )
