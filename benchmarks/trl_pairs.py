"""The losses of TRL's DPOTrainer on one batch of pairs, with its own tokenization and model.

Runs in TRL's environment, without grupo; the models are those of `tests.helpers.formula_models`:

    python -m tests.helpers.formula_models MODELS
    benchmarks/.trl/bin/python benchmarks/trl_pairs.py MODELS tests/reference/pairs/dpo_trainer.json
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

ROWS = (
    {"prompt": "What is 2+2?", "chosen": " 4", "rejected": " five, I think"},
    {"prompt": "Hi", "chosen": " there!", "rejected": " no"},
    {"prompt": "Name a colour:", "chosen": " blue", "rejected": " bread"},
)
OPTIONS: Mapping[str, Mapping[str, float]] = {
    "sigmoid": {"beta": 0.1},
    "ipo": {"beta": 0.1},
    "sigmoid_norm": {"beta": 5.0},
    "hinge": {"beta": 0.1},
    "nca_pair": {"beta": 0.1},
    "robust": {"beta": 0.1, "label_smoothing": 0.1},
}


def loss_of(models: Path, loss_type: str, options: Mapping[str, float]) -> float:
    """The loss of all rows as one batch."""
    with tempfile.TemporaryDirectory() as output:
        config = DPOConfig(
            output_dir=output,
            loss_type=[loss_type],
            per_device_train_batch_size=len(ROWS),
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
            **options,
        )
        trainer = DPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(models / "policy", dtype=torch.float32),
            ref_model=AutoModelForCausalLM.from_pretrained(
                models / "reference", dtype=torch.float32
            ),
            args=config,
            train_dataset=Dataset.from_list([dict(row) for row in ROWS]),
            processing_class=AutoTokenizer.from_pretrained(models / "policy"),
        )
        (inputs,) = trainer.get_train_dataloader()
        trainer.model.eval()  # no dropout
        with torch.no_grad():
            return trainer.compute_loss(trainer.model, inputs).item()


def main() -> None:
    """Write the rows and the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, help="folder of the models")
    parser.add_argument("file", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    losses: dict[str, Any] = {
        loss_type: {"options": options, "loss": loss_of(arguments.models, loss_type, options)}
        for loss_type, options in OPTIONS.items()
    }
    data = {"trl": trl.__version__, "rows": ROWS, "losses": losses}
    arguments.file.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
