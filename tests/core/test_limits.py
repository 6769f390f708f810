"""Every number and every list of a component, a pipeline or a recipe has a limit."""

import time
import typing
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from grupo.config.recipe_files.types import short_names
from grupo.core import limits
from grupo.core.component import component
from grupo.core.limit_of_name import LIMIT_OF_NAME
from grupo.core.limits import SEED
from grupo.pipeline.pipeline import Pipeline
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError
from tests.helpers.component_fields import (
    ComponentField,
    component_classes,
    component_fields,
    is_component,
    takes_floats,
    takes_lists,
    takes_whole_numbers,
)
from tests.helpers.paths import ROOT
from tests.helpers.resource_use import limited_peak

HUGE = 10**18
HUGE_FLOAT = 1e300
ENTRIES = 10**6
SECONDS = 1.0  # to refuse a value
MEMORY = 300 * 2**20  # bytes, to refuse all of them
# They hold a loaded model, which no recipe file can write, and fit a field as every function does.
LOADED = {
    *("LMHead", "Denoiser", "VelocityField", "SoftThinkingEngine"),
    *("FlowSampler", "FlowActor", "UnmaskingSampler", "MaskedActor"),
}


# This program fills these fields with what it measures; no recipe, pipeline or option sets them.
MEASURED = {
    *(
        "FileDigest.size",
        "StepDurationsRecord.seconds",
        "StepDurationsRecord.length",
        "StepDurationsRecord.torn_bytes",
    ),
    *("ModelSize.num_parameters", "ModelSize.kv_size", "ModelSize.context_length"),
    *("Usage.steps", "Usage.updates"),
}


def fields_of(takes: Callable[[Any], bool]) -> list[ComponentField]:
    """The fields of all components whose type has a property, without those that are measured."""
    return [f for f in component_fields() if takes(f.hint) and str(f) not in MEASURED]


def refuse(field: Any, value: Any) -> str:
    """A problem with the refusal of a value; "" if it is right."""
    begin = time.perf_counter()
    try:
        field.make(value)
    except ConfigError as error:
        seconds = time.perf_counter() - begin
        is_named = str(error).startswith(f"{field}: ") and "Allowed: " in str(error)
        is_short = len(str(error)) < 400
        is_fast = seconds < SECONDS
        right = is_named and is_short and is_fast
        return "" if right else f"{field}: {str(error)[:200]} ({seconds:.1f} s)"
    except Exception as error:  # the message names the field
        return f"{field}: {type(error).__name__}: {error}"
    return f"{field}: accepted"


def is_seed(name: str) -> bool:
    return LIMIT_OF_NAME.get(name) is SEED


def test_every_whole_number_of_a_component_is_limited():
    whole = fields_of(takes_whole_numbers)
    with limited_peak(MEMORY):
        problems = [refuse(f, HUGE) for f in whole if not is_seed(f.name)]
        problems += [refuse(f, 2**64) for f in whole if is_seed(f.name)]  # 10^18 is a seed
    assert list(filter(None, problems)) == []
    assert {"Recipe.prompts_per_step", "Pipeline.rounds", "Updates.epochs"} <= set(map(str, whole))


def test_whole_numbers_of_any_length_are_refused_with_a_short_message():
    whole = fields_of(takes_whole_numbers)
    assert list(filter(None, (refuse(f, 10**5000) for f in whole))) == []


def test_every_other_number_of_a_component_is_limited():
    numbers = fields_of(takes_floats)
    assert list(filter(None, (refuse(f, HUGE_FLOAT) for f in numbers))) == []
    assert {"Recipe.learning_rate", "Adam.eps"} <= set(map(str, numbers))


def test_every_list_of_a_component_is_limited():
    lists = fields_of(takes_lists)
    long = ("a",) * ENTRIES
    with limited_peak(MEMORY):
        problems = [refuse(f, long) for f in lists]
    assert list(filter(None, problems)) == []
    assert {"Recipe.aux_models", "Pipeline.stages", "MultiTurn.rewards"} <= set(map(str, lists))


def test_measured_numbers_are_those_of_the_list():
    measured = {str(f) for f in component_fields() if limits.MEASURED in remarks(f.hint)}
    assert measured == MEASURED
    assert {str(f) for f in fields_of(takes_whole_numbers)} & measured == set()


def test_everything_that_a_recipe_file_names_is_a_component():
    known, waiting = set(), [Recipe, Pipeline]
    while waiting:
        cls = waiting.pop()
        known.add(cls)
        hints = {f.hint for f in component_fields() if f.owner is cls and not is_plain(f.hint)}
        named = {value for hint in hints for value in short_names(hint).values()}
        waiting += named - known - set(waiting)
    assert {cls.__name__ for cls in known if not is_component(cls)} == LOADED
    assert len(known) > 200
    assert {cls for cls in known if cls.__name__ not in LOADED} <= set(component_classes())


def remarks(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()


def is_plain(hint: Any) -> bool:
    return takes_whole_numbers(hint) or hint in (str, bool, float)


def test_a_planted_field_is_limited_by_its_name_and_by_its_type():
    @component
    class Planted:
        group_size: int = 1
        other: int = 1
        weight: float = 1.0
        delay_seconds: float = 1.0
        items: tuple[int, ...] = ()

    Planted(10_000, 10**9, 1e38, 1e9, (1,) * 100_000)
    for name, value, allowed in (
        ("group_size", 10_001, "at most 10,000 rollouts"),
        ("group_size", -10_001, "at most 10,000 rollouts"),
        ("other", 10**9 + 1, "at most 1,000,000,000"),
        ("weight", 1e39, r"at most 10\^38"),
        ("delay_seconds", 1e10, "at most 1,000,000,000 seconds"),
        ("items", (1,) * 100_001, "at most 100,000 entries"),
        ("items", (10**10,), "at most 1,000,000,000"),
    ):
        with pytest.raises(ConfigError, match=rf"Planted\.{name}: .*\. Allowed: {allowed}\."):
            Planted(**{name: value})


@pytest.mark.parametrize(("prompts", "group_size"), [(100_000, 11), (200, 5001)])
def test_rollouts_of_a_step_are_limited(prompts, group_size):
    from grupo.methods.grpo import grpo
    from grupo.toy.quickstart import RECIPE

    with pytest.raises(ConfigError, match=r"prompts_per_step: .* Allowed: at most 1,000,000 rol"):
        RECIPE.replace(prompts_per_step=prompts, method=grpo(group_size=group_size))


def test_page_lists_every_limit_with_its_reason():
    assert limits.limits_table() in (ROOT / "docs" / "bad_input.md").read_text()
    assert all(limit.reason and limit.maximum > 0 for limit in limits.LIMITS)
    assert set(LIMIT_OF_NAME.values()) <= set(limits.LIMITS)
