"""Policies of the tiny multimodal models."""

import functools
from typing import Any

from grupo.models.vision_lm import VisionLM, VisionPolicy


def kind_of(name: str) -> str:
    """The kind of media that a family reads."""
    return "audio" if name == "qwen2_audio" else "image"


def policy_of(folder: str, **fields: Any) -> VisionPolicy:
    return VisionLM(folder, max_new_tokens=8, **fields).build()


@functools.cache
def cached_policy_of(folder: str, **fields: Any) -> VisionPolicy:
    """The policy, built once: for tests that do not change it."""
    return policy_of(folder, **fields)
