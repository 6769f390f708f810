"""The part of `grupo train --help` that lists the fields of a recipe and shows examples."""

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any

from typer.core import TyperCommand

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
    ' and components, such as "Cosine(1e-5, 0)". `grupo train --show-config` prints every field.'
)


class RecipeCommand(TyperCommand):
    """A command whose help lists the fields of a recipe and ends in worked examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from grupo.cli.build_recipe import FIELD_ALIASES  # takes a second to import
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
    'Sampled rollouts per task. [default: 8]'
    """
    _, _, block = (inspect.getdoc(cls) or "").partition("Args:\n")
    lines = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", block, re.MULTILINE)
    meanings = {name: " ".join(text.split()) for name, text in lines}
    help_texts = {}
    for field in fields(cls):
        is_shown = field.default is not MISSING and isinstance(field.default, int | float | str)
        default = f" [default: {field.default}]" if is_shown else ""
        help_texts[field.name] = meanings[field.name] + default
    return help_texts
