"""How the policy of a recipe writes tool calls: chosen by its chat template before a run begins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grupo.core.component import component_fields, is_component, map_components, walk
from grupo.envs import MultiTurn
from grupo.envs.proxy import ProxyEnv
from grupo.envs.tools import ParsedCalls, Toolbox
from grupo.envs.tools.formats import (
    FORMATS,
    FormatName,
    ToolFormat,
    format_named,
    format_of_template,
)
from grupo.models.tool_templates import ToolTemplate, read_tool_templates
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError

CHOICES = ("format", "described_by")  # fields of tools that may be "auto"


def with_tool_formats(recipe: Recipe) -> Recipe:
    """The recipe with values for the fields of its toolboxes that are "auto".

    The format is that of the policy's chat template, or Hermes' if the template is of none. The
    template describes the tools if it can, and prompts are rendered by it. Otherwise the prompt
    describes them; results are then messages of the user, or of the role "tool" where the format's
    templates have it, unless `MultiTurn` names another role.

    Raises:
        ConfigError: A toolbox has a format that the policy cannot follow, or files of its model are
            missing.
    """
    if not any(isinstance(part, Toolbox | ParsedCalls | ProxyEnv) for part in walk(recipe.env)):
        return recipe
    choice = _FormatChoice(read_tool_templates(recipe.policy))
    return recipe.replace(env=map_components(recipe.env, choice.resolve))


def with_choices_of(part: Any, resolved: Any) -> Any:
    """A recipe with the formats of a run that was begun with it, in place of those left open.

    No model is read, which may be gone by then.

    Args:
        part: The recipe, or a part of it.
        resolved: The recipe of the run, or the same part of that.
    """
    if type(part) is not type(resolved):
        return part
    if isinstance(part, tuple) and len(part) == len(resolved):
        return tuple(map(with_choices_of, part, resolved))
    if not is_component(part):
        return part
    chosen = component_fields(resolved)
    fields = {
        name: chosen[name] if _is_open(part, name) else with_choices_of(value, chosen[name])
        for name, value in component_fields(part).items()
    }
    return part if fields == component_fields(part) else replace(part, **fields)


def _is_open(part: Any, field: str) -> bool:
    """Whether the field of a component is chosen by the policy's chat template."""
    if isinstance(part, MultiTurn):
        return field == "role" and not part.role and isinstance(part.env_factory, Toolbox)
    is_choice = isinstance(part, Toolbox | ProxyEnv | ParsedCalls) and field in CHOICES
    return is_choice and getattr(part, field) == "auto"


def tool_notes(recipe: Recipe) -> Iterator[str]:
    """A line for each toolbox of a recipe: how calls are written, and what describes the tools."""
    for part in walk(recipe.env):
        if isinstance(part, Toolbox | ProxyEnv):
            source = "the prompt" if part.described_by == "prompt" else "the chat template"
            yield f"tools: calls in the format {part.format!r}, described by {source}"


@dataclass(frozen=True)
class _FormatChoice:
    """Chooses formats by the chat templates of the policy, or of several policies."""

    templates: Sequence[ToolTemplate]

    def resolve(self, part: Any) -> Any:
        """A component with values in place of "auto"."""
        if isinstance(part, Toolbox | ParsedCalls | ProxyEnv) and part.format == "auto":
            part = replace(part, format=self._format_of_templates())
        if isinstance(part, Toolbox | ProxyEnv):
            return self._with_description(part)
        if isinstance(part, MultiTurn) and isinstance(part.env_factory, Toolbox) and not part.role:
            toolbox = part.env_factory
            in_chat = any(template.is_applied for template in self.templates)
            if in_chat and not toolbox.uses_template and not toolbox.stop_strings:
                return replace(part, role=toolbox.tool_format.result_role)
        return part

    def _format_of_templates(self) -> FormatName:
        formats = [format_of_template(template.text) for template in self.templates]
        names = list(dict.fromkeys(tool_format.name for tool_format in formats if tool_format))
        if len(names) > 1:
            raise ConfigError(
                f"format: 'auto', and the policies' chat templates use {', '.join(names)}. Allowed:"
                f" the name of one format for all of them: {', '.join(sorted(FORMATS))}."
            )
        return names[0] if names else format_named("auto").name

    def _with_description(self, toolbox: Toolbox | ProxyEnv) -> Toolbox | ProxyEnv:
        """Tools that have a format, with a value in place of "auto" in `described_by`."""
        templates, tool_format = self.templates, format_named(toolbox.format)
        can_describe = bool(templates) and all(t.describes_tools for t in templates)
        if toolbox.described_by == "auto":
            can_describe &= all(format_of_template(t.text) == tool_format for t in templates)
            is_chat = isinstance(toolbox, ProxyEnv)  # its prompts are messages
            by_template = can_describe and all(is_chat or t.is_applied for t in templates)
            by_template |= not tool_format.prompt
            toolbox = replace(toolbox, described_by="template" if by_template else "prompt")
        if toolbox.described_by == "template" and not can_describe:
            allowed = ", ".join(sorted(name for name, f in FORMATS.items() if f.prompt))
            raise ConfigError(
                f"format: {toolbox.format!r}, and the policy's chat template describes no tools in"
                f" it. Allowed: 'auto'; or, with described_by='prompt', one of {allowed}."
            )
        for template in templates:
            _check_stop_strings(tool_format, template.stop_strings)
        return toolbox


def _check_stop_strings(tool_format: ToolFormat, given: tuple[str, ...]) -> None:
    """Raise `ConfigError` if the policy would write on where it has to wait for a result."""
    for stop in tool_format.stop_strings:
        if stop not in given:
            raise ConfigError(
                f"policy.stop_strings: {given!r}, and in the format {tool_format.name!r} the policy"
                f" would write results itself. Allowed: with {stop!r} among them."
            )
