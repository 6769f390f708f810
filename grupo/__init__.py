"""grupo: group-relative policy optimisation, each variant a short file of tested mathematics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grupo.compare import Comparison, Seconds, Steps, TaskSet, Tokens, run_comparison
    from grupo.core.media import Audio, Image, Video
    from grupo.core.schedules import Cosine, Linear, Warmup
    from grupo.core.types import Group, Response, Rollout, Task
    from grupo.envs import RewardTerm, SingleTurn
    from grupo.inference.sampling_params import Sampling
    from grupo.method import Method
    from grupo.models.base import AuxModel
    from grupo.models.causal_lm import CausalLM
    from grupo.models.loaded import LoadedModel
    from grupo.models.lora import Lora
    from grupo.models.sharding import FSDP2
    from grupo.models.vision_lm import VisionLM
    from grupo.pipeline import Pipeline, Stage, WeightMerge, resume_pipeline, run_pipeline
    from grupo.recipe import Adam, EarlyStopping, Evaluation, Recipe
    from grupo.report.run import Run
    from grupo.report.train import resume, train
    from grupo.rollouts.evaluate import SuccessCriterion
    from grupo.storage.keep import KeepCheckpoints
    from grupo.tasks import (
        Columns,
        DatasetTasks,
        FromFunction,
        InMemoryTasks,
        ReasoningGym,
        TaskMixture,
    )
    from grupo.util.errors import ConfigError

_MODULES = {  # imported on first use, so that `import grupo` is fast
    "grupo.compare": ("Comparison", "Seconds", "Steps", "TaskSet", "Tokens", "run_comparison"),
    "grupo.util.errors": ("ConfigError",),
    "grupo.envs": ("RewardTerm", "SingleTurn"),
    "grupo.rollouts.evaluate": ("SuccessCriterion",),
    "grupo.method": ("Method",),
    "grupo.models.causal_lm": ("CausalLM",),
    "grupo.models.vision_lm": ("VisionLM",),
    "grupo.core.media": ("Audio", "Image", "Video"),
    "grupo.models.base": ("AuxModel",),
    "grupo.models.lora": ("Lora",),
    "grupo.models.sharding": ("FSDP2",),
    "grupo.inference.sampling_params": ("Sampling",),
    "grupo.recipe": ("Adam", "Evaluation", "Recipe", "EarlyStopping"),
    "grupo.pipeline": ("WeightMerge", "Pipeline", "Stage", "resume_pipeline", "run_pipeline"),
    "grupo.storage.keep": ("KeepCheckpoints",),
    "grupo.core.types": ("Response", "Group", "Rollout", "Task"),
    "grupo.core.schedules": ("Cosine", "Linear", "Warmup"),
    "grupo.tasks": (
        *("Columns", "DatasetTasks", "FromFunction", "InMemoryTasks", "ReasoningGym"),
        "TaskMixture",
    ),
    "grupo.report.run": ("Run",),
    "grupo.report.train": ("resume", "train"),
    "grupo.models.loaded": ("LoadedModel",),
}
__all__ = [
    "FSDP2",
    "Adam",
    "Audio",
    "AuxModel",
    "CausalLM",
    "Columns",
    "Comparison",
    "ConfigError",
    "Cosine",
    "DatasetTasks",
    "EarlyStopping",
    "Evaluation",
    "FromFunction",
    "Group",
    "Image",
    "InMemoryTasks",
    "KeepCheckpoints",
    "Linear",
    "LoadedModel",
    "Lora",
    "Method",
    "Pipeline",
    "ReasoningGym",
    "Recipe",
    "Response",
    "RewardTerm",
    "Rollout",
    "Run",
    "Sampling",
    "Seconds",
    "SingleTurn",
    "Stage",
    "Steps",
    "SuccessCriterion",
    "Task",
    "TaskMixture",
    "TaskSet",
    "Tokens",
    "Video",
    "VisionLM",
    "Warmup",
    "WeightMerge",
    "resume",
    "resume_pipeline",
    "run_comparison",
    "run_pipeline",
    "train",
]


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'grupo' has no attribute {name!r}")
    return getattr(import_module(module), name)
