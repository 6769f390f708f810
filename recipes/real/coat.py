"""CoAT: steps of an answer look facts up, on a small real model, compared at equal tokens.

Pan et al., 2025, arXiv:2502.02390. The facts are invented, so that no model knows them, and each
question needs two of them: `The animal of Bako is the owl.` and `The owl sleeps in the barn.`

python recipes/real/coat.py FOLDER [TASKS] --model PATH    # appends to FOLDER/coat.jsonl
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from grupo import RewardTerm, SingleTurn, Task
from grupo.core.interfaces import TurnStrategy, single_response
from grupo.envs.tools import KeywordSearch
from grupo.models.causal_lm import CausalLM
from grupo.report.strategies import comparison_lines, strategy_table
from grupo.rewards import AfterMarker, ExactMatch
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.strategy_comparison import compare_strategies
from grupo.rollouts.turns import StepTreeSearch, Vote
from grupo.rollouts.turns.associations import LookUp
from grupo.util.console import out, print_line

NAMES = tuple(a + b for a in ("Ba", "Ce", "Di", "Fo", "Gu", "Ha") for b in ("kor", "lim", "nax"))
ANIMALS = ("owl", "fox", "hen", "bee", "ant", "cat", "dog", "pig", "cow", "goat")
PLACES = ("barn", "cave", "shed", "tree", "well", "mill", "yard", "loft", "pond", "tower")
MARKER = "####"
EXTRACT = AfterMarker(MARKER)
MAX_NEW_TOKENS = 48
EXAMPLE = (
    "Where does the animal of {name} sleep?\n"
    "The animal of {name} is the {animal}. The {animal} sleeps in the {place}. #### {place}\n\n"
)
PROMPT = (
    EXAMPLE.format(name="Zum", animal="frog", place="lake")
    + EXAMPLE.format(name="Wex", animal="bear", place="wood")
    + "Where does the animal of {name} sleep?\n"
)


def facts() -> list[str]:
    """The facts: the animal of each name, and where each animal sleeps."""
    return [
        *(f"The animal of {name} is the {animal}." for name, animal in animal_of().items()),
        *(f"The {animal} sleeps in the {place}." for animal, place in place_of().items()),
    ]


def animal_of() -> dict[str, str]:
    """The animal of each name."""
    rng = Random("animals")
    return {name: rng.choice(ANIMALS) for name in NAMES}


def place_of() -> dict[str, str]:
    """The place of each animal."""
    return dict(zip(ANIMALS, Random("places").sample(PLACES, len(PLACES)), strict=True))


def questions() -> Iterator[Task]:
    """A question for each name, which two facts answer."""
    for name, animal in animal_of().items():
        yield Task(name, PROMPT.format(name=name), place_of()[animal])


def write_facts(folder: Path) -> Path:
    """Write the facts, one a line, and return their file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "facts.txt"
    file.write_text("".join(f"{fact}\n" for fact in facts()))
    return file


def strategies(file: Path) -> dict[str, TurnStrategy]:
    """The strategies that are compared; the first one is the baseline of the others."""
    tree = StepTreeSearch(4, 2, max_steps=4, max_step_tokens=16, step_end=".")
    look_up = LookUp(KeywordSearch(str(file), top_k=3), form=" ({document})")
    return {
        "single": single_response,
        "vote of 4": Vote(4, EXTRACT),
        "tree": tree,
        "tree that looks up": replace(tree, associate=look_up),
    }


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the facts and the comparison.")],
    tasks: Annotated[int, typer.Argument(help="Number of questions.")] = len(NAMES),
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = "smollm2",
) -> None:
    """Compare the strategies, and print and append the comparison."""
    policy = CausalLM(model, max_new_tokens=MAX_NEW_TOKENS, apply_chat_template=True).build()
    comparison = compare_strategies(
        policy,
        SingleTurn((RewardTerm("right", ExactMatch(EXTRACT)),)),
        list(questions())[:tasks],
        strategies(write_facts(folder)),
        attempts_per_task=1,
        success=SuccessCriterion("right"),
        extract=EXTRACT,
        key=0,
    )
    out.print(strategy_table(comparison))
    for line in comparison_lines(comparison):
        print_line(line)
    with (folder / "coat.jsonl").open("a") as file:
        file.write(json.dumps(comparison.to_data()) + "\n")


if __name__ == "__main__":
    typer.run(main)
