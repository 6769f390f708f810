"""Every sampler and turn strategy of the package: alone, and around one another."""

from collections.abc import Iterator, Mapping
from random import Random

from grupo.core.interfaces import Actor, single_response
from grupo.core.search_tree import CriticUCT
from grupo.core.sibling_rules import AllSiblings
from grupo.core.types import Observation, Rollout, Task
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
    Evolved,
    FirstErrorSearch,
    FirstTurnTree,
    ForcedRethinking,
    GroupPart,
    GroupSampler,
    HintColumn,
    LabelledAnswers,
    LabelledSteps,
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
    PromptVariants,
    RecalledThoughts,
    Revised,
    ShuffledOptions,
    SimilarExamples,
    StepTreeSearch,
    ThinkingBudget,
    Vote,
    WithProgram,
)
from grupo.rollouts.turns.associations import Association
from grupo.toy.multi_turn_lm import MultiTurnDemonstrations
from tests.helpers.paths import ROOT
from tests.helpers.token_counts import (
    STOP,
)


def associated(step: str, known: str) -> Association:
    """The same text after each step."""
    return Association(",")


EXAMPLES = str(ROOT / "tests/helpers/shown_examples.jsonl")
TURN_STRATEGIES = {
    "single_response": GroupSampler(2),
    "AdaptiveGraph": GroupSampler(2, AdaptiveGraph(2, 2, 1, 4)),
    "Analogies": GroupSampler(2, Analogies(2, 2, 4)),
    "BestOf": GroupSampler(2, BestOf(2)),
    "ChunkedThinking": GroupSampler(2, ChunkedThinking(6, 1, 2, 3)),
    "ForcedStart": GroupSampler(2, ForcedStart(",")),
    "FreshContext": GroupSampler(2, FreshContext()),
    "LentThought": GroupSampler(
        2, LentThought(thought_prompt="{task}", think_start="", think_end=".")
    ),
    "StepTreeSearch": GroupSampler(2, StepTreeSearch(3, 2, 2, 6, ",", associate=associated)),
    "RecalledThoughts": GroupSampler(2, RecalledThoughts(2, thought_tokens=4)),
    "Revised": GroupSampler(
        2,
        Revised(
            2,
            guide_prompt="{task} {answer}",
            stop_prompt="{task} {answer}",
            revision_prompt="{task}{answer}{guide}",
        ),
    ),
    "SimilarExamples": GroupSampler(2, SimilarExamples(EXAMPLES)),
    "ShuffledOptions": GroupSampler(2, ShuffledOptions(2)),
    "PromptVariants": GroupSampler(2, PromptVariants(("{task}", "{task}!"))),
    "ThinkingBudget": GroupSampler(2, ThinkingBudget(4, 3, STOP)),
    "Vote": GroupSampler(2, Vote(2)),
    "WithProgram": GroupSampler(2, WithProgram(EXAMPLES)),
}
# they read heads, or act inside the model: tests/models/test_guided_turns.py, test_inside_turns.py
REAL_MODEL = {"GroupThink", "AdvantageRevision", "SteeredEntropy", "StepBeam", "ValueGuided"}
UNSAMPLED = (
    "DemonstrationSampler",
    "LabelledAnswers",
    "LabelledSteps",
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
    "Evolved": Evolved(GroupSampler(2)),
    "FirstTurnTree": FirstTurnTree(2, 2),
    "ForcedRethinking": ForcedRethinking(
        GroupSampler(4, until_stop), RandomTrigger(((",", 1.0),), "", ""), chance=1.0
    ),
    "LabelledAnswers": LabelledAnswers("hint"),
    "LabelledSteps": LabelledSteps("steps", "step_labels"),
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
        "FirstErrorSearch": FirstErrorSearch(inner, AtFractions((0.0, 0.4, 0.6)), 2, 2),
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
