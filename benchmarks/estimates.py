"""Compare the estimates of memory and time per step with trainings on a CPU.

    python -m benchmarks.estimates
    python -m benchmarks.estimates --only lora bfloat16

Each configuration is trained for two steps in a process of its own, with one thread, on a model
with random weights. The measured memory is the peak of the resident memory less that of the same
process after the training of a very small model, which loads all libraries. The measured time is
the CPU time of the second step: other programs on the machine do not count.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast, Qwen3Config

from grupo.algo.optimizers import SGD, Adam
from grupo.config.defaults import TaskLengths
from grupo.config.memory_estimate import estimate_memory
from grupo.config.run_work import RunWork
from grupo.config.time_estimate import measure_speed
from grupo.core.component import component
from grupo.core.types import RewardResult, Rollout, Task
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.models.devices import compute_dtype, resolve_device
from grupo.models.lora import Lora
from grupo.models.model_size import read_model_size
from grupo.recipe import Recipe
from grupo.training.callbacks import NullCallback
from grupo.training.start import run_training

PROMPT = 32  # tokens
LENGTHS = TaskLengths(count=8, prompt=PROMPT, answer=0, long_prompt=PROMPT, mean_prompt=PROMPT)
CONTEXT = 1024
SPECIAL_TOKENS = 16  # a tokenizer may add some of its own
# components of a recipe must be importable: they are not in the module that runs
COMMAND = (sys.executable, "-c", "from benchmarks.estimates import main; main()")
TINY = {"hidden": 32, "layers": 1, "vocabulary": 512, "prompts": 1, "group": 2, "answer": 8}
DEFAULTS: Mapping[str, Any] = {
    **{"architecture": "llama", "hidden": 512, "layers": 4, "vocabulary": 8_000, "prompts": 2},
    **{"group": 8, "answer": 96, "microbatch": 2048, "lora": 0, "dtype": "float32"},
    **{"checkpointing": False, "optimizer": "adam", "kl": 0.0},
}
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "base": {},
    "small": {"hidden": 256, "layers": 6, "vocabulary": 4_000},
    "wide": {"hidden": 1024, "layers": 4, "vocabulary": 16_000, "answer": 48},
    "vocabulary": {"hidden": 256, "layers": 4, "vocabulary": 50_000},
    "long": {"answer": 256, "group": 4, "hidden": 384},
    "group": {"group": 32, "answer": 64, "hidden": 384},
    "reference": {"kl": 0.04},
    "sgd": {"optimizer": "sgd"},
    "qwen": {"architecture": "qwen"},
    "qwen-checkpointing": {"architecture": "qwen", "checkpointing": True, "microbatch": 8192},
    "bfloat16": {"dtype": "bfloat16"},
    "lora": {"lora": 16, "hidden": 768},
    "lora-checkpointing": {"lora": 16, "hidden": 768, "checkpointing": True},
    "lora-qwen": {"architecture": "qwen", "lora": 16, "hidden": 768},
}


@component
class Prompts:
    """Tasks whose prompts have `PROMPT` tokens."""

    def load(self) -> list[Task]:
        texts = [" ".join(f"w{1 + (i + j) % 64}" for j in range(PROMPT)) for i in range(8)]
        return [Task(str(i), text, "") for i, text in enumerate(texts)]


@component
class RankReward:
    """Rewards that differ within a group, so that every rollout is trained on."""

    async def reply(self, task: Task, rollout: Rollout) -> str | None:
        return None if rollout.turns else str(task.prompt)

    async def score(self, task: Task, rollouts: list[Rollout]) -> list[RewardResult]:
        return [RewardResult(float(i), {"index": float(i)}) for i in range(len(rollouts))]


class StepTimes(NullCallback):
    """The CPU time at the end of every step."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        self.ends.append(time.process_time())


def make_model(folder: Path, size: Mapping[str, Any]) -> str:
    """Save a model with random weights and a tokenizer of the words w0, w1 and so on."""
    count = size["vocabulary"]
    vocabulary = {f"w{i}": i for i in range(count)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w0").save_pretrained(folder)
    heads = max(1, size["hidden"] // 64)
    make_config = LlamaConfig if size["architecture"] == "llama" else Qwen3Config
    config = make_config(
        vocab_size=count + SPECIAL_TOKENS,
        hidden_size=size["hidden"],
        head_dim=size["hidden"] // heads,
        intermediate_size=4 * size["hidden"],
        num_hidden_layers=size["layers"],
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=0,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # the end token is never sampled: every answer reaches its limit
        model.get_input_embeddings().weight[0] = 0
    model.save_pretrained(folder)
    return str(folder)


def make_recipe(model: str, size: Mapping[str, Any]) -> Recipe:
    """A recipe of two steps."""
    policy = CausalLM(
        model,
        max_new_tokens=size["answer"],
        tokens_per_microbatch=size["microbatch"],
        lora=Lora(size["lora"]) if size["lora"] else None,
        dtype=size["dtype"],
        gradient_checkpointing=size["checkpointing"],
        device="cpu",
    )
    return Recipe(
        policy=policy,
        env=RankReward(),
        tasks=Prompts(),
        eval_tasks=0,
        method=grpo(group_size=size["group"], kl_coef=size["kl"]),
        max_steps=2,
        prompts_per_step=size["prompts"],
        learning_rate=1e-5,
        optimizer={"adam": Adam(), "sgd": SGD()}[size["optimizer"]],
    )


def measure(size: Mapping[str, Any]) -> dict[str, float]:
    """Train a configuration in this process; bytes and seconds, measured and estimated."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_models(folder, size)
        tiny = make_recipe(str(folder / "tiny"), {**size, **TINY})
        run_training(tiny, folder / "tiny_run")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        recipe = make_recipe(str(folder / "model"), size)
        times = StepTimes()
        run_training(recipe, folder / "run", times)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        dtype = compute_dtype(recipe.policy.dtype, resolve_device("cpu"))
        model = read_model_size(recipe.policy.model)
        work = RunWork(recipe, model, LENGTHS, dtype.itemsize, on_cpu=True)
        memory = estimate_memory(recipe, model, work.step, dtype.itemsize, on_cpu=True)
        seconds = work.time(measure_speed(resolve_device("cpu"), dtype)).step
        print(memory, file=sys.stderr)
        return {
            "parameters": model.num_parameters,
            "peak": peak * 1024,  # KiB on Linux
            "estimated_peak": memory.peak,
            "seconds": times.ends[1] - times.ends[0],
            "estimated_seconds": seconds,
        }


def save_models(folder: Path, size: Mapping[str, Any]) -> None:
    """Save both models in another process, whose memory does not count."""
    command = [*COMMAND, "--save", str(folder), "--size", json.dumps(size)]
    subprocess.run(command, check=True)


def print_table(names: list[str]) -> None:
    """Print a row for each configuration."""
    columns = ["configuration", "parameters", "peak, MB", "estimated", "ratio"]
    columns += ["step, s", "estimated", "ratio"]
    print(f"| {' | '.join(columns)} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        size = {**DEFAULTS, **CONFIGURATIONS[name]}
        command = [*COMMAND, "--size", json.dumps(size)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        row = json.loads(result.splitlines()[-1])
        cells = [f"{name}: {_description(CONFIGURATIONS[name])}"]
        cells += [f"{row['parameters'] / 1e6:.1f} M"]
        for measured, estimated, unit, digits in (
            (row["peak"], row["estimated_peak"], 1e6, 0),
            (row["seconds"], row["estimated_seconds"], 1, 2),
        ):
            cells += [f"{measured / unit:,.{digits}f}", f"{estimated / unit:,.{digits}f}"]
            cells += [f"{estimated / measured:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def _description(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in changes.items()) or "the defaults"


def main() -> None:
    """Print the table; with `--size` measure one configuration."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", choices=CONFIGURATIONS, default=[*CONFIGURATIONS])
    parser.add_argument("--size", default="")
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    if args.save:
        size = json.loads(args.size)
        make_model(Path(args.save) / "model", size)
        make_model(Path(args.save) / "tiny", {**size, **TINY})
    elif args.size:
        print(json.dumps(measure(json.loads(args.size))))
    else:
        print_table(args.only)


if __name__ == "__main__":
    main()
