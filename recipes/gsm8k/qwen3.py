"""Grade-school mathematics on a small chat model with adapters; needs the hub and a GPU.

grupo train recipes/gsm8k/qwen3.py:RECIPE
"""

from grupo import Adam, CausalLM, Cosine, Lora, Part, Recipe, Rows, SingleTurn, Warmup
from grupo.core.types import Rollout, Task
from grupo.methods.dapo import dapo
from grupo.rewards import After, EachBy, last_boxed
from grupo.rewards.math_equal import same
from grupo.tasks import Columns

GSM8K = Columns(prompt="question", answer="answer")
FINAL = After("####")  # the data set's solutions end in "#### 42"


def correct(task: Task, rollout: Rollout) -> float:
    """1 when the last boxed expression equals the number that the worked solution ends in."""
    said, wanted = last_boxed(rollout.text), FINAL(str(task.answer))
    return float(said is not None and wanted is not None and same(wanted, said, 5.0))


RECIPE = Recipe(
    policy=CausalLM("Qwen/Qwen3-0.6B", lora=Lora(rank=32), dtype="bfloat16", chat=True, limit=1024),
    env=SingleTurn((Part("correct", EachBy(correct)),)),
    tasks=Rows("openai/gsm8k", GSM8K, split="train", config="main"),
    held_out=Rows("openai/gsm8k", GSM8K, split="test", config="main"),
    method=dapo(limit=1024, margin=256, group=8),
    steps=300,
    prompts=32,
    lr=Warmup(0.03, Cosine(2e-5)),
    optimizer=Adam(),
    save_every=20,
)
