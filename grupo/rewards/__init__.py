"""Reward functions: grupo's own, the user's, and those written for TRL and verl.

A reward scores all rollouts of a group at once: `reward(task, rollouts)` returns a value for each.
`as_reward` adapts functions of other signatures.
"""

from grupo.core.extract_answer import (
    AfterMarker,
    AfterThinking,
    Extractor,
    FirstInsideTag,
    InsideTag,
    InsideTagOrWhole,
    answer_after_thoughts,
    final_answer,
    last_boxed,
    whole_text,
)
from grupo.rewards.above_reference import AboveReference
from grupo.rewards.base import (
    AnswerError,
    FunctionReward,
    PerRolloutReward,
    Reward,
    RewardValue,
    SelfTimedReward,
)
from grupo.rewards.behaviours import BehaviourCounts
from grupo.rewards.block_answer import BlockAnswer, FactMatch
from grupo.rewards.boxes import BoxCenterHit, BoxCloseness, BoxIoU
from grupo.rewards.by_column import ByColumn, ColumnNumber, Route
from grupo.rewards.checked_rubric import CheckedRubric
from grupo.rewards.closed_answers import MultipleChoice, NumberWithin
from grupo.rewards.corrupted import Inverted, MeanLogProb, RandomReward, WhereFormatted
from grupo.rewards.countdown import CountdownExpression
from grupo.rewards.critique_verdict import HelpfulCritique, VerdictMatch
from grupo.rewards.diversity import DistinctNgrams
from grupo.rewards.downstream import Downstream
from grupo.rewards.edit_similarity import EditSimilarity, plain_latex, single_spaces
from grupo.rewards.grounded_thoughts import (
    BoxBeforeTag,
    FewRepetitions,
    SingleTag,
    ThoughtTags,
    UnigramBleu,
)
from grupo.rewards.information import InformationConsistency
from grupo.rewards.instruction_following import InstructionFollowing, all_met, share_met
from grupo.rewards.judges import (
    ChatEndpoint,
    Judge,
    LikelierReply,
    LocalModel,
    Overthinking,
    PairwiseJudge,
    Rubric,
    RubricInOneCall,
)
from grupo.rewards.juries import Debate, Jury, Statement, majority
from grupo.rewards.learned import LearnedReward
from grupo.rewards.length_budget import BudgetBand, BudgetTriangle
from grupo.rewards.length_shaped import CosineReward, RelativeLength
from grupo.rewards.math_equal import MathEqual, MathError
from grupo.rewards.open_answers import (
    ColumnMatch,
    GuardedAnswer,
    NgramCosine,
    SimilarText,
    TextBefore,
)
from grupo.rewards.option_sets import OptionSubset
from grupo.rewards.placed_tiles import PlacedTiles
from grupo.rewards.progressive import LengthAwareBleu, ProgressiveReward
from grupo.rewards.reasoning_gym import ReasoningGymVerifier
from grupo.rewards.reflection import HasReflection
from grupo.rewards.render_similarity import RenderSimilarity, ink_overlap
from grupo.rewards.reward_function import RewardSource, as_reward, load_reward
from grupo.rewards.role_diversity import RoleDiversity
from grupo.rewards.rouge import RougeL
from grupo.rewards.segmentation_mask import FloodFill, MaskIoU, Segmenter
from grupo.rewards.segmentation_prompt import SegmentationPrompt
from grupo.rewards.solution_sets import CheckedSolutions, SetOfSolutions
from grupo.rewards.structured_answers import (
    AnswerList,
    CellShare,
    SameData,
    last_json_block,
    unchanged,
    without_case,
)
from grupo.rewards.table_similarity import TableSimilarity, any_text
from grupo.rewards.text import (
    ExactMatch,
    LabelMatch,
    LengthPenalty,
    RegexAnswer,
    RegexMatch,
    TagFormat,
)
from grupo.rewards.thought_checks import ConclusionMatch, EnoughWords, VariedThoughts
from grupo.rewards.time_spans import TimeSpanFormat, TimeSpanIoU
from grupo.rewards.trl_verl import TRLReward, VerlBatchReward, VerlReward
from grupo.rewards.video_mask_quality import VideoMaskQuality
from grupo.rewards.video_masks import ColourPropagator, VideoSegmentation
from grupo.tasks.renderers import FormulaRenderer, SvgRenderer

__all__ = [
    "AboveReference",
    "AfterMarker",
    "AfterThinking",
    "AnswerError",
    "AnswerList",
    "BehaviourCounts",
    "BlockAnswer",
    "BoxBeforeTag",
    "BoxCenterHit",
    "BoxCloseness",
    "BoxIoU",
    "BudgetBand",
    "BudgetTriangle",
    "ByColumn",
    "CellShare",
    "ChatEndpoint",
    "CheckedRubric",
    "CheckedSolutions",
    "ColourPropagator",
    "ColumnMatch",
    "ColumnNumber",
    "ConclusionMatch",
    "CosineReward",
    "CountdownExpression",
    "Debate",
    "DistinctNgrams",
    "Downstream",
    "EditSimilarity",
    "EnoughWords",
    "ExactMatch",
    "Extractor",
    "FactMatch",
    "FewRepetitions",
    "FirstInsideTag",
    "FloodFill",
    "FormulaRenderer",
    "FunctionReward",
    "GuardedAnswer",
    "HasReflection",
    "HelpfulCritique",
    "InformationConsistency",
    "InsideTag",
    "InsideTagOrWhole",
    "InstructionFollowing",
    "Inverted",
    "Judge",
    "Jury",
    "LabelMatch",
    "LearnedReward",
    "LengthAwareBleu",
    "LengthPenalty",
    "LikelierReply",
    "LocalModel",
    "MaskIoU",
    "MathEqual",
    "MathError",
    "MeanLogProb",
    "MultipleChoice",
    "NgramCosine",
    "NumberWithin",
    "OptionSubset",
    "Overthinking",
    "PairwiseJudge",
    "PerRolloutReward",
    "PlacedTiles",
    "ProgressiveReward",
    "RandomReward",
    "ReasoningGymVerifier",
    "RegexAnswer",
    "RegexMatch",
    "RelativeLength",
    "RenderSimilarity",
    "Reward",
    "RewardSource",
    "RewardValue",
    "RoleDiversity",
    "RougeL",
    "Route",
    "Rubric",
    "RubricInOneCall",
    "SameData",
    "SegmentationPrompt",
    "Segmenter",
    "SelfTimedReward",
    "SetOfSolutions",
    "SimilarText",
    "SingleTag",
    "Statement",
    "SvgRenderer",
    "TRLReward",
    "TableSimilarity",
    "TagFormat",
    "TextBefore",
    "ThoughtTags",
    "TimeSpanFormat",
    "TimeSpanIoU",
    "UnigramBleu",
    "VariedThoughts",
    "VerdictMatch",
    "VerlBatchReward",
    "VerlReward",
    "VideoMaskQuality",
    "VideoSegmentation",
    "WhereFormatted",
    "all_met",
    "answer_after_thoughts",
    "any_text",
    "as_reward",
    "final_answer",
    "ink_overlap",
    "last_boxed",
    "last_json_block",
    "load_reward",
    "majority",
    "plain_latex",
    "share_met",
    "single_spaces",
    "unchanged",
    "whole_text",
    "without_case",
]
