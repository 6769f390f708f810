"""DAPO on GSM8K with a small chat model and LoRA; needs the model hub and a GPU.

grupo train recipes/gsm8k/qwen3.py:RECIPE
"""

from grupo import Adam, CausalLM, Cosine, DatasetTasks, Lora, Recipe, RewardTerm, SingleTurn, Warmup
from grupo.core.types import Rollout, Task
from grupo.methods.dapo import dapo
from grupo.rewards import AfterMarker, FunctionReward, last_boxed
from grupo.rewards.math_equal import math_equal
from grupo.tasks import Columns

GSM8K_COLUMNS = Columns(prompt="question", answer="answer")
FINAL_ANSWER = AfterMarker("####")  # the data set's solutions end in "#### 42"


def correct(task: Task, rollout: Rollout) -> float:
    """1 if the last boxed expression equals the final number of the worked solution, else 0."""
    answer, truth = last_boxed(rollout.text), FINAL_ANSWER(str(task.reference_answer))
    return float(answer is not None and truth is not None and math_equal(truth, answer, 5.0))


RECIPE = Recipe(
    policy=CausalLM(
        "Qwen/Qwen3-0.6B",
        lora=Lora(rank=32),
        dtype="bfloat16",
        apply_chat_template=True,
        max_new_tokens=1024,
    ),
    env=SingleTurn((RewardTerm("correct", FunctionReward(correct)),)),
    tasks=DatasetTasks("openai/gsm8k", GSM8K_COLUMNS, split="train", config="main"),
    eval_tasks=DatasetTasks("openai/gsm8k", GSM8K_COLUMNS, split="test", config="main"),
    method=dapo(max_length=1024, overlong_buffer=256, group_size=8),
    max_steps=300,
    prompts_per_step=32,
    learning_rate=Warmup(0.03, Cosine(2e-5)),
    optimizer=Adam(),
    save_every=20,
)
