"""Rewards: what rollouts are worth, by functions of ours, of the user's, of TRL's and verl's."""

from grupo.rewards.base import EachBy, EachRollout, Mark, Reward
from grupo.rewards.extract_answer import After, Extract, Tagged, last_boxed, whole_text
from grupo.rewards.math_equal import MathError, SameMath
from grupo.rewards.reasoning_gym import GymVerifier
from grupo.rewards.reward_function import Python, adapt, load
from grupo.rewards.text import Captures, Exact, Formatted, LengthPenalty, Matches
from grupo.rewards.trl_verl import Trl, Verl, VerlBatch

__all__ = [
    "After",
    "Captures",
    "EachBy",
    "EachRollout",
    "Exact",
    "Extract",
    "Formatted",
    "GymVerifier",
    "LengthPenalty",
    "Mark",
    "Matches",
    "MathError",
    "Python",
    "Reward",
    "SameMath",
    "Tagged",
    "Trl",
    "Verl",
    "VerlBatch",
    "adapt",
    "last_boxed",
    "load",
    "whole_text",
]
