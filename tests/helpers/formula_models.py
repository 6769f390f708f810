"""Tiny language models whose weights are a formula, the same on every machine and version."""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from tests.helpers.tiny_lm import FAMILIES, tokenizer


def save_formula_model(folder: Path, phase: float) -> Path:
    """Save a model with the weights 0.4 sin(k + phase), k the number of the weight.

    Args:
        folder: The folder.
        phase: Distinguishes models.
    """
    model = AutoModelForCausalLM.from_config(FAMILIES["llama"]())
    start = 0
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            number = torch.arange(start, start + parameter.numel(), dtype=torch.float64)
            parameter.copy_((0.4 * (number + phase).sin()).view_as(parameter))
            start += parameter.numel()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def save_pair_of_models(folder: Path) -> tuple[str, str]:
    """Save a policy and its reference in a folder."""
    phases = {"policy": 0.0, "reference": 1.0}
    policy, reference = (str(save_formula_model(folder / n, x)) for n, x in phases.items())
    return policy, reference


if __name__ == "__main__":
    save_pair_of_models(Path(sys.argv[1]))
