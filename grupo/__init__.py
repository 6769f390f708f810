"""grupo: group-relative policy optimisation, every variant one short file of tested mathematics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grupo.comparing import Comparison, Seconds, Steps, TaskSet, Tokens, compare
    from grupo.envs import Part, SingleTurn
    from grupo.evaluation import Solved
    from grupo.method import Method
    from grupo.policies.causal_lm import CausalLM
    from grupo.policies.company import Other
    from grupo.policies.loading import Lora
    from grupo.policies.logits import Sampling
    from grupo.recipe import Adam, Evaluation, Recipe, Until
    from grupo.rollout import Action, Group, Rollout, Task
    from grupo.schedules import Cosine, Linear, Warmup
    from grupo.tasks import FromFunction, Mix, ReasoningGym, Rows
    from grupo.trainer import resume, train

_HOMES = {  # loaded when first asked for: `import grupo` takes no time
    "grupo.comparing": ("Comparison", "Seconds", "Steps", "TaskSet", "Tokens", "compare"),
    "grupo.envs": ("Part", "SingleTurn"),
    "grupo.evaluation": ("Solved",),
    "grupo.method": ("Method",),
    "grupo.policies.causal_lm": ("CausalLM",),
    "grupo.policies.company": ("Other",),
    "grupo.policies.loading": ("Lora",),
    "grupo.policies.logits": ("Sampling",),
    "grupo.recipe": ("Adam", "Evaluation", "Recipe", "Until"),
    "grupo.rollout": ("Action", "Group", "Rollout", "Task"),
    "grupo.schedules": ("Cosine", "Linear", "Warmup"),
    "grupo.tasks": ("FromFunction", "Mix", "ReasoningGym", "Rows"),
    "grupo.trainer": ("resume", "train"),
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
