"""grupo: group-relative policy optimisation, every variant one short file of tested mathematics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grupo.compare import Comparison, Seconds, Steps, TaskSet, Tokens, compare
    from grupo.core.schedules import Cosine, Linear, Warmup
    from grupo.core.types import Action, Group, Rollout, Task
    from grupo.envs import Part, SingleTurn
    from grupo.inference.sampling_params import Sampling
    from grupo.method import Method
    from grupo.models.aux_models import Other
    from grupo.models.causal_lm import CausalLM
    from grupo.models.loading import Lora
    from grupo.recipe import Adam, Evaluation, Recipe, Until
    from grupo.rollouts.evaluate import Solved
    from grupo.tasks import FromFunction, Mix, ReasoningGym, Rows
    from grupo.training.trainer import resume, train

_HOMES = {  # loaded when first asked for: `import grupo` takes no time
    "grupo.compare": ("Comparison", "Seconds", "Steps", "TaskSet", "Tokens", "compare"),
    "grupo.envs": ("Part", "SingleTurn"),
    "grupo.rollouts.evaluate": ("Solved",),
    "grupo.method": ("Method",),
    "grupo.models.causal_lm": ("CausalLM",),
    "grupo.models.aux_models": ("Other",),
    "grupo.models.loading": ("Lora",),
    "grupo.inference.sampling_params": ("Sampling",),
    "grupo.recipe": ("Adam", "Evaluation", "Recipe", "Until"),
    "grupo.core.types": ("Action", "Group", "Rollout", "Task"),
    "grupo.core.schedules": ("Cosine", "Linear", "Warmup"),
    "grupo.tasks": ("FromFunction", "Mix", "ReasoningGym", "Rows"),
    "grupo.training.trainer": ("resume", "train"),
}
__all__ = [
    "Action",
    "Adam",
    "CausalLM",
    "Comparison",
    "Cosine",
    "Evaluation",
    "FromFunction",
    "Group",
    "Linear",
    "Lora",
    "Method",
    "Mix",
    "Other",
    "Part",
    "ReasoningGym",
    "Recipe",
    "Rollout",
    "Rows",
    "Sampling",
    "Seconds",
    "SingleTurn",
    "Solved",
    "Steps",
    "Task",
    "TaskSet",
    "Tokens",
    "Until",
    "Warmup",
    "compare",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'grupo' has no attribute {name!r}")
    return getattr(import_module(home), name)
