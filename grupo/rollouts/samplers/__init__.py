"""Samplers, which generate the rollouts of a group. Many of them extend another sampler's group."""

from grupo.rollouts.samplers.answer_belief import WithAnswerBelief
from grupo.rollouts.samplers.answer_span import WithAnswerSpan, WithFirstAnswerLength
from grupo.rollouts.samplers.answer_tokens import OnlyAnswerTokens
from grupo.rollouts.samplers.anytime import AnytimeBudgets
from grupo.rollouts.samplers.base import FixedGroupSize, Sampler
from grupo.rollouts.samplers.chosen_start import ChosenStart, WithColumnTerm
from grupo.rollouts.samplers.comprehended_solutions import ComprehendedSolutions
from grupo.rollouts.samplers.context_pairs import ContextPairs
from grupo.rollouts.samplers.corrective_hints import CorrectiveHints, TextFlaws
from grupo.rollouts.samplers.critique import Critiques, with_critique
from grupo.rollouts.samplers.cut_points import AfterText, AtFractions, AtTurns, AtUnlikelyItems
from grupo.rollouts.samplers.deliberation import Deliberation, drop_repeats
from grupo.rollouts.samplers.demonstrations import (
    ConversationColumn,
    DemonstrationSampler,
    GivenAnswerSampler,
    SolutionColumn,
)
from grupo.rollouts.samplers.distilled import (
    DistilledDrafts,
    LikeliestDrafts,
    RandomDrafts,
    SummaryOfDrafts,
)
from grupo.rollouts.samplers.early_exit import EarlyExits
from grupo.rollouts.samplers.entropy_branching import EntropyBranching
from grupo.rollouts.samplers.evolved import Evolved
from grupo.rollouts.samplers.explanations import Explanations, RecitedExplanation
from grupo.rollouts.samplers.first_error import FirstErrorSearch
from grupo.rollouts.samplers.greedy_baseline import WithGreedyBaseline
from grupo.rollouts.samplers.hint_columns import (
    HintColumn,
    HintLevels,
    with_hint,
    with_scaffold,
)
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.samplers.intervener import AskedIntervener
from grupo.rollouts.samplers.labelled_steps import LabelledSteps
from grupo.rollouts.samplers.leveled_hints import AtHintLevel, HintLevel, LeveledHint
from grupo.rollouts.samplers.multi_temperature import MultiTemperature
from grupo.rollouts.samplers.paraphrases import ParaphraseSampler
from grupo.rollouts.samplers.preference_pairs import LabelledAnswers, PreferencePairs
from grupo.rollouts.samplers.prefix_value import PrefixValue
from grupo.rollouts.samplers.pruning import BetaBins, EarlyPruning
from grupo.rollouts.samplers.recited_rescues import WithRecitedRescues
from grupo.rollouts.samplers.refinement import RefineBest
from grupo.rollouts.samplers.reflection import WithReflection
from grupo.rollouts.samplers.resample import ResampleUntilInformative
from grupo.rollouts.samplers.rescue import AllIncorrect, Rescue, RescueAttempt
from grupo.rollouts.samplers.reset import Reset
from grupo.rollouts.samplers.rethinking import ForcedRethinking, RandomTrigger
from grupo.rollouts.samplers.rewritten import Rewritten
from grupo.rollouts.samplers.sde_branching import SingleStepBranching, SplitTree
from grupo.rollouts.samplers.segment_tree import SegmentTree
from grupo.rollouts.samplers.self_hint import SelfHints, with_self_hints
from grupo.rollouts.samplers.self_improving_pairs import RevisionPrompt, SelfImprovingPairs
from grupo.rollouts.samplers.self_play import SelfPlay
from grupo.rollouts.samplers.shared_prefix import FirstTurnTree
from grupo.rollouts.samplers.solved_examples import SolvedExamples
from grupo.rollouts.samplers.split_group import GroupPart, SplitGroup
from grupo.rollouts.samplers.synthesis import SynthesizedTasks
from grupo.rollouts.samplers.tagged import TaggedDemonstrations, add_tags, without_tags
from grupo.rollouts.samplers.teacher_feedback import TeacherFeedback
from grupo.rollouts.samplers.thought_dropout import ThoughtDropout, without_thoughts
from grupo.rollouts.samplers.tree_answers import TreeAnswers
from grupo.rollouts.samplers.tree_pairs import TreePairs
from grupo.rollouts.samplers.trimmed_thinking import TrimmedThinking
from grupo.rollouts.samplers.windowed import WindowSampler
from grupo.rollouts.samplers.with_expert import WithExpertSolution
from grupo.rollouts.samplers.workshop import ReviewPairs, Workshop

__all__ = [
    "AfterText",
    "AllIncorrect",
    "AnytimeBudgets",
    "AskedIntervener",
    "AtFractions",
    "AtHintLevel",
    "AtTurns",
    "AtUnlikelyItems",
    "BetaBins",
    "ChosenStart",
    "ComprehendedSolutions",
    "ContextPairs",
    "ConversationColumn",
    "CorrectiveHints",
    "Critiques",
    "Deliberation",
    "DemonstrationSampler",
    "DistilledDrafts",
    "EarlyExits",
    "EarlyPruning",
    "EntropyBranching",
    "Evolved",
    "Explanations",
    "FirstErrorSearch",
    "FirstTurnTree",
    "FixedGroupSize",
    "ForcedRethinking",
    "GivenAnswerSampler",
    "GroupPart",
    "GroupSampler",
    "HintColumn",
    "HintLevel",
    "HintLevels",
    "LabelledAnswers",
    "LabelledSteps",
    "LeveledHint",
    "LikeliestDrafts",
    "MultiTemperature",
    "OnlyAnswerTokens",
    "ParaphraseSampler",
    "PreferencePairs",
    "PrefixValue",
    "RandomDrafts",
    "RandomTrigger",
    "RecitedExplanation",
    "RefineBest",
    "ResampleUntilInformative",
    "Rescue",
    "RescueAttempt",
    "Reset",
    "ReviewPairs",
    "RevisionPrompt",
    "Rewritten",
    "Sampler",
    "SegmentTree",
    "SelfHints",
    "SelfImprovingPairs",
    "SelfPlay",
    "SingleStepBranching",
    "SolutionColumn",
    "SolvedExamples",
    "SplitGroup",
    "SplitTree",
    "SummaryOfDrafts",
    "SynthesizedTasks",
    "TaggedDemonstrations",
    "TeacherFeedback",
    "TextFlaws",
    "ThoughtDropout",
    "TreeAnswers",
    "TreePairs",
    "TrimmedThinking",
    "WindowSampler",
    "WithAnswerBelief",
    "WithAnswerSpan",
    "WithColumnTerm",
    "WithExpertSolution",
    "WithFirstAnswerLength",
    "WithGreedyBaseline",
    "WithRecitedRescues",
    "WithReflection",
    "Workshop",
    "add_tags",
    "drop_repeats",
    "with_critique",
    "with_hint",
    "with_scaffold",
    "with_self_hints",
    "without_tags",
    "without_thoughts",
]
