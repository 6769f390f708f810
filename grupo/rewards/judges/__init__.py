"""Judges: language models that score answers. See docs/judges.md."""

from grupo.rewards.judges.base import ChatModel, ChatReply, JudgeError
from grupo.rewards.judges.endpoint import ChatEndpoint
from grupo.rewards.judges.judge import Judge
from grupo.rewards.judges.likelier_reply import LikelierReply
from grupo.rewards.judges.local_model import LocalModel
from grupo.rewards.judges.overthinking import Overthinking
from grupo.rewards.judges.pairwise_judge import PairwiseJudge
from grupo.rewards.judges.parsers import (
    JSONField,
    LetterChoice,
    NumberAfter,
    ReplyError,
    ReplyParser,
    YesNo,
)
from grupo.rewards.judges.rubric import Rubric, RubricInOneCall
from grupo.rewards.judges.rubric_items import RubricColumn, RubricItem

__all__ = [
    "ChatEndpoint",
    "ChatModel",
    "ChatReply",
    "JSONField",
    "Judge",
    "JudgeError",
    "LetterChoice",
    "LikelierReply",
    "LocalModel",
    "NumberAfter",
    "Overthinking",
    "PairwiseJudge",
    "ReplyError",
    "ReplyParser",
    "Rubric",
    "RubricColumn",
    "RubricInOneCall",
    "RubricItem",
    "YesNo",
]
