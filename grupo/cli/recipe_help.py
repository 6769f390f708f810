"""The part of `grupo train --help` that lists the fields of a recipe and shows examples."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from grupo.cli.single_value import SingleValueCommand

EXAMPLES = (
    (
        "A data set and a reward function of your own, with an instruct model:",
        "grupo train --model Qwen/Qwen2.5-0.5B-Instruct --tasks tasks.jsonl"
        " --reward rewards.py:correct",
    ),
    (
        "The quickstart with DAPO, 50 steps and a cosine schedule:",
        'grupo train --method "dapo(max_length=64, overlong_buffer=16)" --steps 50'
        ' --learning-rate "Cosine(1e-4, 0)"',
    ),
    (
        "A recipe in a file, with other values for three of its fields:",
        "grupo train recipe.py --run runs/first --policy.max-new-tokens 128 --method.loss.clip-high"
        " 0.28 --seed 1",
    ),
)
DOTTED_FIELDS = (
    "Fields of a field are dotted: --policy.max-new-tokens 128. Values are numbers, strings, tuples"
    ' and components, such as "Cosine(1e-5, 0)". `grupo train --dry-run` prints every field.'
)


class FieldsCommand(SingleValueCommand):
    """A command that takes every field of a recipe as an option; a shell completes their names."""

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        items = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("--"):
            return items
        item_type: Any = type(super().shell_complete(ctx, "--")[0])  # typer exports no name of it
        names = [name for name in field_options() if name.startswith(incomplete)]
        return [*items, *map(item_type, names)]


class RecipeCommand(FieldsCommand):
    """A command whose help lists the fields of a recipe and ends in worked examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from grupo.cli.fields import FIELD_ALIASES
        from grupo.recipe import Recipe

        aliases = {field: f", --{option}" for option, field in FIELD_ALIASES.items()}
        options = {parameter.name for parameter in self.params}
        rows = [
            (f"--{name.replace('_', '-')}{aliases.get(name, '')}", meaning)
            for name, meaning in field_help(Recipe).items()
            if name not in options
        ]
        with formatter.section("Further fields of a recipe, each of which is an option"):
            formatter.write_dl(rows)
        for title, fields_of_field in nested_help().items():
            with formatter.section(title):
                for option, meaning in fields_of_field.items():  # a table would break long names
                    formatter.write(f"{'':{formatter.current_indent}}{option}  {meaning}\n")
        formatter.write_paragraph()
        formatter.write_text(DOTTED_FIELDS)
        with formatter.section("Examples"):
            for title, command in EXAMPLES:
                formatter.write_text(title)
                formatter.write(f"{'':{formatter.current_indent}}  $ {command}\n")
                formatter.write_paragraph()


def field_help(cls: type) -> dict[str, str]:
    """The meaning of each field from the "Args:" block of a component's docstring.

    Numbers and strings among the defaults are added in brackets.

    >>> from grupo.recipe import Evaluation
    >>> field_help(Evaluation)["attempts"]
    'Sampled rollouts per task; 0, with such a method, generates nothing. [default: 8]'
    """
    meanings = _documented_fields(cls)
    help_texts = {}
    for field in fields(cls):
        is_shown = field.default is not MISSING and isinstance(field.default, int | float | str)
        default = f" [default: {field.default}]" if is_shown else ""
        help_texts[field.name] = meanings[field.name] + default
    return help_texts


def _documented_fields(cls: type) -> dict[str, str]:
    """The "Args:" blocks of the docstrings of a component's class and its bases, by field."""
    docs = ((inspect.getdoc(base) or "").partition("Args:\n")[2] for base in reversed(cls.__mro__))
    lines = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", "\n".join(docs), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in lines}


def nested_help() -> dict[str, dict[str, str]]:
    """The fields of the quickstart's components by section, each with its meaning and value.

    The components of tasks are left out: `--tasks` replaces them.
    """
    from grupo.core.component import component_fields, is_component
    from grupo.toy.quickstart import RECIPE

    sections = {}
    for name, value in component_fields(RECIPE).items():
        if is_component(value) and name not in ("tasks", "eval_tasks"):
            title = f"Fields of {name}, {type(value).__name__} in the quickstart"
            sections[title] = dict(_nested_rows(value, f"--{name.replace('_', '-')}."))
    return sections


def _nested_rows(component: Any, prefix: str) -> Iterator[tuple[str, str]]:
    from grupo.core.component import component_fields, is_component, to_code

    meanings = _documented_fields(type(component))
    for name, value in component_fields(component).items():
        option = f"{prefix}{name.replace('_', '-')}"
        yield option, f"{meanings.get(name, '')} [{to_code(value)}]".strip()
        if is_component(value):
            yield from _nested_rows(value, f"{option}.")


def field_options() -> list[str]:
    """Every field of the quickstart's recipe as an option, for the completion of a shell."""
    from grupo.config.overrides import field_paths
    from grupo.toy.quickstart import RECIPE

    return [f"--{path.replace('_', '-')}" for path in field_paths(RECIPE)]
