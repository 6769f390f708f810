"""How far sampler and trainer of a mixture of experts differ in bfloat16, with and without replay.

    python examples/router_replay.py FOLDER

An untrained OLMoE with 64 experts, 8 of them for a token, is written to FOLDER/model. Two runs of
one step print the mismatch before the update. A processor without instructions for bfloat16
emulates them here; `grupo train` would compute in float32, which is faster.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import OlmoeConfig, OlmoeForCausalLM

from grupo import CausalLM, Method, Recipe, RewardTerm, SingleTurn
from grupo.core.types import Rollout, Task
from grupo.models import devices
from grupo.rollouts.samplers import GroupSampler
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.training.start import run_training

METRICS = ("sampler_mismatch/logp_diff_mean", "sampler_mismatch/logp_diff_max")


def save_model(folder: Path) -> None:
    """Write a model of 4 layers with random weights, and a tokenizer of characters."""
    tokenizer = phrase_tokenizer([])
    config = OlmoeConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_experts=64,
        num_experts_per_tok=8,
        initializer_range=0.12,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    OlmoeForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def digits(task: Task, rollout: Rollout) -> float:
    """The fraction of characters that are digits."""
    return sum(c.isdigit() for c in rollout.text) / max(1, len(rollout.text))


def mismatch(folder: Path, *, replay: bool) -> dict[str, float]:
    """Metrics of the first step of a run."""
    recipe = Recipe(
        policy=CausalLM(
            str(folder / "model"), dtype="bfloat16", max_new_tokens=32, router_replay=replay
        ),
        env=SingleTurn((RewardTerm("digits", digits),)),
        tasks=[{"prompt": f"{i} + {i} =", "answer": str(2 * i)} for i in range(2)],
        method=Method(sampler=GroupSampler(8)),
        max_steps=1,
        prompts_per_step=2,
        eval_tasks=0,
    )
    run = folder / f"replay_{replay}"
    run_training(recipe, run)
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[0])


if __name__ == "__main__":
    root = Path(sys.argv[1])
    devices.has_bfloat16 = lambda device: True
    save_model(root / "model")
    for replay in (False, True):
        metrics = mismatch(root, replay=replay)
        numbers = "  ".join(f"{name} {metrics[name]:.2e}" for name in METRICS)
        print(f"router_replay={replay}  {numbers}")
