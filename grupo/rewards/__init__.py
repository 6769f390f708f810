"""Rewards: what rollouts are worth, by functions of ours, of the user's, of TRL's and verl's."""

from grupo.rewards.base import FunctionReward, PerRolloutReward, Reward, RewardValue
from grupo.rewards.extract_answer import AfterMarker, Extractor, InsideTag, last_boxed, whole_text
from grupo.rewards.math_equal import MathEqual, MathError
from grupo.rewards.reasoning_gym import ReasoningGymVerifier
from grupo.rewards.reward_function import ImportedReward, as_reward, load_reward
from grupo.rewards.text import ExactMatch, LengthPenalty, RegexAnswer, RegexMatch, TagFormat
from grupo.rewards.trl_verl import TRLReward, VerlBatchReward, VerlReward

__all__ = [
    "AfterMarker",
    "ExactMatch",
    "Extractor",
    "FunctionReward",
    "ImportedReward",
    "InsideTag",
    "LengthPenalty",
    "MathEqual",
    "MathError",
    "PerRolloutReward",
    "ReasoningGymVerifier",
    "RegexAnswer",
    "RegexMatch",
    "Reward",
    "RewardValue",
    "TRLReward",
    "TagFormat",
    "VerlBatchReward",
    "VerlReward",
    "as_reward",
    "last_boxed",
    "load_reward",
    "whole_text",
]
