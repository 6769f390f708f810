"""No sampler generates a token that is not counted, alone or around another sampler."""

import ast
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import grupo
from grupo.core.types import Group
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy import LoadedMultiPolicy
from grupo.rollouts import samplers, turns
from grupo.rollouts.samplers import GroupSampler, with_self_hints
from grupo.rollouts.samplers.self_hint import HintPrompt
from grupo.util.event_loop import run_coroutine
from tests.helpers.all_samplers import (
    REAL_MODEL,
    SAMPLERS,
    TURN_STRATEGIES,
    UNSAMPLED,
    fast_samplers,
    wrappers,
)
from tests.helpers.drawing_engine import DrawingEngine
from tests.helpers.fast_cases import fast_cases
from tests.helpers.token_counts import TASK, TwoTurnEnv, count, engine, folder, num_returned, policy

__all__ = ["engine", "folder", "policy"]  # fixtures
PACKAGE = Path(grupo.__file__).parent


def sources_with(text: str) -> Iterator[tuple[str, str]]:
    """The files of the package that contain a text, with their sources."""
    for path in PACKAGE.rglob("*.py"):
        if text in (source := path.read_text()):
            yield path.relative_to(PACKAGE).as_posix(), source


def classes_called_with(*arguments: str) -> set[str]:
    """Classes of the package with an asynchronous `__call__` of these arguments, no protocols."""
    return {
        node.name
        for _, text in sources_with("async def __call__")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.dump(b) for b in node.bases)
        for member in node.body
        if isinstance(member, ast.AsyncFunctionDef)
        and member.name == "__call__"
        and [argument.arg for argument in member.args.args] == ["self", *arguments]
    }


def test_every_sampler_and_turn_strategy_of_the_package_is_tried():
    inner_classes = {"LoadedProgram", "WithOwnUsage", "WithProgress", "WithRejected"}
    tried = {name.split()[0] for name in SAMPLERS}
    assert tried == classes_called_with("task", "env", "actor") - inner_classes
    assert tried - {"MultiTurnDemonstrations"} < {*samplers.__all__}
    strategies = classes_called_with("actor", "rollout", "observation") - inner_classes
    assert strategies | {"single_response"} == {*turns.__all__} == {*TURN_STRATEGIES} | REAL_MODEL


@pytest.mark.parametrize("name", fast_cases(fast_samplers(), SAMPLERS))
def test_every_token_that_the_engine_draws_is_counted(policy, engine, name):
    group, counted = count(SAMPLERS[name], policy)
    assert sum(counted.values()) == engine.num_drawn
    assert (engine.num_drawn > 0) == (name.split()[-1] not in UNSAMPLED)
    assert group.rollouts


@pytest.mark.parametrize(
    "name",
    sorted(
        {*wrappers(GroupSampler(2))}
        - {
            "AtHintLevel",
            "FirstErrorSearch",
            "WithAnswerBelief",
            "WithColumnTerm",
            "WithExpertSolution",
        }
    ),
)
def test_wrappers_generate_more_than_the_sampler_that_they_wrap(policy, engine, name):
    count(GroupSampler(2), policy)
    alone, engine.num_drawn = engine.num_drawn, 0
    count(wrappers(GroupSampler(2))[name], policy)
    assert engine.num_drawn > alone


@pytest.mark.parametrize(
    "name", ["Rescue with_critique", "Rescue with_scaffold", "WithGreedyBaseline"]
)
def test_discarded_rollouts_are_counted(policy, engine, name):
    group, counted = count(wrappers(GroupSampler(3))[name], policy)
    assert sum(counted.values()) == engine.num_drawn > num_returned(group)


def test_hints_are_counted_by_their_role(policy, engine):
    group, counted = count(
        with_self_hints(GroupSampler(2), 3, HintPrompt("{attempt}"), extract_hint=str), policy
    )
    hints = Group(TASK, tuple(r for r in group.rollouts if r.role == "hinter"))
    assert len(hints.rollouts) == 3
    assert counted["hinter"] == num_returned(hints)
    assert counted[""] + counted["hinter"] == engine.num_drawn


def test_tokens_of_every_policy_of_several_are_counted(policy, engine, folder):
    hinter = CausalLM(folder, max_new_tokens=5).build()
    hinter_engine = DrawingEngine(hinter)
    sampler = with_self_hints(GroupSampler(2), 3, HintPrompt("{attempt}"), extract_hint=str)
    _, counted = count(sampler, LoadedMultiPolicy(policy, {"hinter": hinter}))
    assert counted == {"": engine.num_drawn, "hinter": hinter_engine.num_drawn}
    assert hinter_engine.num_drawn == 3 * 5


def test_engines_are_called_through_the_counting_batcher_only():
    """Nothing else in the package makes a batcher, and samplers import neither engine nor model."""
    batchers = {"DynamicBatcher", "CountingBatcher"}
    callers = {
        file
        for file, text in sources_with("Batcher(")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and {getattr(node.func, "id", "")} & batchers
    }
    assert callers == {"models/trainable.py"}
    importing = {
        file for name in ("inference", "models") for file, _ in sources_with(f"grupo.{name}")
    }
    assert "models/trainable.py" in importing
    assert not [file for file in importing if file.startswith("rollouts/")]


def test_actors_of_one_policy_count_apart(policy, engine):
    first, second = policy.actor(3), policy.actor(4)
    run_coroutine(GroupSampler(2)(TASK, TwoTurnEnv(), first))
    assert (sum(first.generated_tokens.values()), second.generated_tokens) == (engine.num_drawn, {})


def test_counts_do_not_depend_on_the_order_of_the_rollouts(policy, engine):
    async def sample_in_order(order: list[int]) -> dict[str, int]:
        actor = policy.actor(3)
        tasks = [replace(TASK, prompt="Q" * (1 + i)) for i in range(3)]
        sampler = SAMPLERS["Rescue with_self_hints single_response"]
        await asyncio.gather(*(sampler(tasks[i], TwoTurnEnv(), actor.fork(i)) for i in order))
        return dict(actor.generated_tokens)

    counts = [run_coroutine(sample_in_order(order)) for order in ([0, 1, 2], [2, 0, 1])]
    assert counts[0] == counts[1]
    assert list(counts[0]) == list(counts[1]) == ["", "hinter"]
