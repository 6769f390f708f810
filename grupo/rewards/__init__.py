"""Rewards: what rollouts are worth, by functions of ours, of the user's, of TRL's and verl's."""

from grupo.rewards.adapt import Python, adapt, load
from grupo.rewards.base import EachBy, EachRollout, Mark, Reward
from grupo.rewards.extract import After, Extract, Tagged, last_boxed, whole_text
from grupo.rewards.foreign import Trl, Verl, VerlBatch
from grupo.rewards.gym import GymVerifier
from grupo.rewards.mathematics import MathError, SameMath
from grupo.rewards.text import Captures, Exact, Formatted, LengthPenalty, Matches

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
