"""No sampler generates a token that is not counted, alone or around another sampler."""

import ast
import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import grupo
from grupo.core.interfaces import Actor, single_response
from grupo.core.search_tree import CriticUCT
from grupo.core.sibling_rules import AllSiblings
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy import LoadedMultiPolicy
from grupo.rollouts import samplers, turns
from grupo.rollouts.samplers import (
    AnytimeBudgets,
    AtFractions,
    AtHintLevel,
    BetaBins,
    ChosenStart,
    ContextPairs,
    CorrectiveHints,
    Deliberation,
    DemonstrationSampler,
    DistilledDrafts,
    EarlyExits,
    EarlyPruning,
    EntropyBranching,
    FirstTurnTree,
    ForcedRethinking,
    GroupPart,
    GroupSampler,
    HintColumn,
    LabelledAnswers,
    MultiTemperature,
    OnlyAnswerTokens,
    ParaphraseSampler,
    PreferencePairs,
    PrefixValue,
    RandomTrigger,
    ResampleUntilInformative,
    Rescue,
    RescueAttempt,
    Reset,
    ReviewPairs,
    RevisionPrompt,
    Rewritten,
    Sampler,
    SegmentTree,
    SelfImprovingPairs,
    SelfPlay,
    SingleStepBranching,
    SolutionColumn,
    SplitGroup,
    SplitTree,
    SummaryOfDrafts,
    SynthesizedTasks,
    TaggedDemonstrations,
    TeacherFeedback,
    TextFlaws,
    TreeAnswers,
    TreePairs,
    TrimmedThinking,
    WindowSampler,
    WithAnswerBelief,
    WithAnswerSpan,
    WithColumnTerm,
    WithExpertSolution,
    WithFirstAnswerLength,
    WithGreedyBaseline,
    WithRecitedRescues,
    WithReflection,
    Workshop,
    with_critique,
    with_hint,
    with_scaffold,
    with_self_hints,
)
from grupo.rollouts.samplers.merge_rules import best_replaces_first, replace_all
from grupo.rollouts.samplers.pruning import BetaBin
from grupo.rollouts.samplers.self_hint import HintPrompt
from grupo.rollouts.samplers.step_critics import SelfRanking
from grupo.rollouts.samplers.trained_prompts import recited
from grupo.rollouts.turns import (
    AdaptiveGraph,
    Analogies,
    BestOf,
    ChunkedThinking,
    ForcedStart,
    FreshContext,
    LentThought,
    MonteCarlo,
    Remembered,
    Revised,
    Shown,
    ShuffledOptions,
    Templates,
    ThinkingBudget,
    Vote,
    WithProgram,
)
from grupo.rollouts.turns.associations import Association
from grupo.toy.multi_turn_lm import MultiTurnDemonstrations
from grupo.util.event_loop import run_coroutine
from tests.helpers.drawing_engine import DrawingEngine
from tests.helpers.fast_cases import fast_cases
from tests.helpers.paths import ROOT
from tests.helpers.token_counts import (
    STOP,
    TASK,
    TwoTurnEnv,
    count,
    engine,
    folder,
    num_returned,
    policy,
)

__all__ = ["engine", "folder", "policy"]  # fixtures


def associated(step: str, known: str) -> Association:
    """The same text after each step."""
    return Association(",")


PACKAGE = Path(grupo.__file__).parent
EXAMPLES = str(ROOT / "tests/helpers/shown_examples.jsonl")
TURN_STRATEGIES = {
    "single_response": GroupSampler(2),
    "AdaptiveGraph": GroupSampler(2, AdaptiveGraph(2, 2, 1, 4)),
    "Analogies": GroupSampler(2, Analogies(2, 2, 4)),
    "BestOf": GroupSampler(2, BestOf(2)),
    "ChunkedThinking": GroupSampler(2, ChunkedThinking(6, 1, 2, 3)),
    "ForcedStart": GroupSampler(2, ForcedStart(",")),
    "FreshContext": GroupSampler(2, FreshContext()),
    "LentThought": GroupSampler(2, LentThought(ask="{task}", start="", end=".")),
    "MonteCarlo": GroupSampler(2, MonteCarlo(3, 2, 2, 6, ",", associate=associated)),
    "Remembered": GroupSampler(2, Remembered(2, thought_tokens=4)),
    "Revised": GroupSampler(
        2, Revised(2, guide="{task} {answer}", stop="{task} {answer}", ask="{task}{answer}{guide}")
    ),
    "Shown": GroupSampler(2, Shown(EXAMPLES)),
    "ShuffledOptions": GroupSampler(2, ShuffledOptions(2)),
    "Templates": GroupSampler(2, Templates(("{task}", "{task}!"))),
    "ThinkingBudget": GroupSampler(2, ThinkingBudget(4, 3, STOP)),
    "Vote": GroupSampler(2, Vote(2)),
    "WithProgram": GroupSampler(2, WithProgram(EXAMPLES)),
}
# they read heads, or act inside the model: tests/models/test_guided_turns.py, test_inside_turns.py
REAL_MODEL = {"GroupThink", "Reconsidered", "SteeredEntropy", "StepBeam", "ValueGuided"}
UNSAMPLED = (
    "DemonstrationSampler",
    "LabelledAnswers",
    "MultiTurnDemonstrations",
    "PreferencePairs",
    "SelfImprovingPairs",
    "TaggedDemonstrations",
)


def context_of(task: Task) -> str:
    """The context of every task."""
    return "a"


def same_task(task: Task, answer: str, rng: Random) -> Task:
    """The task of every description."""
    return task


async def until_stop(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """A response that a stop string may end."""
    return await single_response(actor.with_stop(STOP), rollout, observation)


PLAIN: Mapping[str, Sampler] = {
    "AnytimeBudgets": AnytimeBudgets(2, (2, 4), 2, 3, ",", STOP, ":"),
    "ChosenStart": ChosenStart(2, starts=((",", 0.5), ("a", 0.5))),
    "ContextPairs": ContextPairs(context_of, "R{context}", -1.0),
    "CorrectiveHints": CorrectiveHints(
        GroupSampler(2), TextFlaws(tuple((letter, ",") for letter in "ab")), max_hint_share=1.0
    ),
    "Deliberation": Deliberation(
        ("a", "b"), "hint", "solution", 2, discuss="R{thoughts}", answer="S", plant="T"
    ),
    "DemonstrationSampler": DemonstrationSampler(SolutionColumn()),
    "DistilledDrafts": DistilledDrafts(
        2, drafts=2, distill=SummaryOfDrafts("S{drafts}"), share=1.0, request="R{workspace}"
    ),
    "EarlyExits": EarlyExits(2, ",", STOP),
    "EarlyPruning": EarlyPruning(4, 0.5, 3, 4, 1, BetaBins((BetaBin(1.0, 2.0),))),
    "EntropyBranching": EntropyBranching(4, 2, branch_prob=0.9),
    "FirstTurnTree": FirstTurnTree(2, 2),
    "ForcedRethinking": ForcedRethinking(
        GroupSampler(4, until_stop), RandomTrigger(((",", 1.0),), "", ""), chance=1.0
    ),
    "LabelledAnswers": LabelledAnswers("hint"),
    "MultiTurnDemonstrations": MultiTurnDemonstrations(lambda task, observations, rng: "ab"),
    "OnlyAnswerTokens": OnlyAnswerTokens(GroupSampler(2), ","),
    "PreferencePairs": PreferencePairs("hint", "solution"),
    "SelfImprovingPairs": SelfImprovingPairs("hint", "solution", RevisionPrompt(",")),
    "ParaphraseSampler": ParaphraseSampler(2),
    "Reset": Reset(2),
    "SegmentTree": SegmentTree(4, 2, 3),
    "SelfPlay": SelfPlay(2),
    "SingleStepBranching": SingleStepBranching(2, (0, 1)),
    "SplitGroup": SplitGroup(2, parts=(GroupPart(0.0, ","), GroupPart(1.0, "", "R"))),
    "SplitTree": SplitTree((0, 2)),
    "TaggedDemonstrations": TaggedDemonstrations(("hint",)),
    "TeacherFeedback": TeacherFeedback(2, share=1.0, request="R{answer}"),
    "TrimmedThinking": TrimmedThinking((",", "a"), 2, 0.5, "", STOP),
    "ReviewPairs": ReviewPairs(2, "R{answer}", "S{review}"),
    "TreeAnswers": TreeAnswers(4, 2, 2, STOP),
    "TreePairs": TreePairs(4, 2, 2, STOP),
    "TreePairs of turns": TreePairs(4, 2, 2, "", CriticUCT(), SelfRanking(), AllSiblings(0.0)),
    "WindowSampler": WindowSampler(2, 3, 8),
    "WithAnswerSpan": WithAnswerSpan(GroupSampler(2), ",", "b"),
    "WithFirstAnswerLength": WithFirstAnswerLength(GroupSampler(2), ","),
    "Workshop": Workshop(2, "R{answer}", "S{review}"),
    **{f"GroupSampler {name}": sampler for name, sampler in TURN_STRATEGIES.items()},
}

ATTEMPTS = (
    RescueAttempt(HintColumn(), replace_all),
    RescueAttempt(HintColumn(), best_replaces_first, recited),
)


def wrappers(inner: GroupSampler) -> Mapping[str, Sampler]:
    """Every sampler that wraps a group sampler; with rewards of 0 each of them generates more."""
    return {
        "MultiTemperature": MultiTemperature(inner, 2, 1.5),
        "Rewritten": Rewritten(inner, simplify="R", vary="R"),
        "SynthesizedTasks": SynthesizedTasks(inner, same_task),
        "WithAnswerBelief": WithAnswerBelief(inner),
        "PrefixValue": PrefixValue(inner, AtFractions((0.0, 0.6)), 2),
        "Rescue with_critique": with_critique(inner),
        "WithColumnTerm": WithColumnTerm(inner, "rate"),
        "WithExpertSolution": WithExpertSolution(inner),
        "WithGreedyBaseline": WithGreedyBaseline(inner),
        "Rescue with_hint": with_hint(inner),
        "WithReflection": WithReflection(inner),
        "AtHintLevel": AtHintLevel(inner),
        "WithRecitedRescues": WithRecitedRescues(with_hint(inner), ("with_hint",), -1.0),
        "Rescue with_scaffold": with_scaffold(inner),
        "Rescue with_self_hints": with_self_hints(
            inner, 2, HintPrompt("{attempt}"), extract_hint=str
        ),
    }


def all_samplers() -> Iterator[tuple[str, Sampler]]:
    """Every sampler alone, in every wrapper, and resampled at two levels."""
    wrapped = {
        f"{name} {turn}": sampler
        for turn, inner in TURN_STRATEGIES.items()
        for name, sampler in wrappers(inner).items()
    }
    for name, sampler in {**PLAIN, **wrapped}.items():
        yield name, sampler
        yield f"ResampleUntilInformative {name}", ResampleUntilInformative(sampler, 3)
    deep = Rescue(with_self_hints(GroupSampler(2), 2, HintPrompt("{attempt}"), str), ATTEMPTS)
    yield "Rescue with_self_hints twice", deep
    yield "WithGreedyBaseline around two rescues", WithGreedyBaseline(deep)
    yield "SynthesizedTasks around three", SynthesizedTasks(with_critique(deep), same_task)
    twice = ResampleUntilInformative(ResampleUntilInformative(GroupSampler(2), 2), 2)
    yield "ResampleUntilInformative twice", twice


SAMPLERS = dict(all_samplers())


def fast_samplers() -> set[str]:
    """All but most pairs of a wrapper and a turn strategy, which run in `make test-slow`.

    Each wrapper is tried around one response, and the wrappers in turn around the other turn
    strategies in turn, so that each is in a pair.
    """
    single, *others = TURN_STRATEGIES
    names = [*wrappers(GroupSampler(2))]
    pairs = {f"{name} {turn}" for name in names for turn in TURN_STRATEGIES}
    tried = {f"{name} {single}" for name in names}
    count = max(len(names), len(others))
    tried |= {f"{names[i % len(names)]} {others[i % len(others)]}" for i in range(count)}
    resampled = "ResampleUntilInformative "
    return {name for name in SAMPLERS if name.removeprefix(resampled) not in pairs - tried}


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
    inner_classes = {"GivenProgram", "WithOwnUsage", "WithProgress", "WithRejected"}
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
        - {"AtHintLevel", "WithAnswerBelief", "WithColumnTerm", "WithExpertSolution"}
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
