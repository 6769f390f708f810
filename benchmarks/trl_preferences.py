"""Losses and gradients of TRL's preference trainers, for `tests/reference`.

Runs in TRL's environment, without grupo: `benchmarks/.trl/bin/python benchmarks/trl_preferences.py
tests/reference`. TRL's own methods compute the numbers from recorded log-probabilities: the model
is replaced by one that returns them.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
import trl
from torch import Tensor
from trl.experimental.cpo import CPOTrainer
from trl.experimental.orpo import ORPOTrainer
from trl.trainer.dpo_trainer import DPOTrainer

COMMIT = "f2cd577"  # its lines compute what release 1.16.0 does, for the reverse KL divergence
VERSION = "1.16.0"
LENGTHS = (3, 2, 1, 4, 2, 2)  # chosen and rejected in turn, three pairs
CHANGE = (  # log-probabilities of the policy minus -1
    (0.3, -0.2, 0.1, 0.0),
    (-0.4, 0.25, 0.0, 0.0),
    (0.6, 0.0, 0.0, 0.0),
    (0.15, -0.5, 0.45, -0.1),
    (-0.7, 0.35, 0.0, 0.0),
    (0.2, 0.05, 0.0, 0.0),
)
REFERENCE = (
    (-1.1, -0.9, -1.2, 0.0),
    (-0.8, -1.3, 0.0, 0.0),
    (-0.6, 0.0, 0.0, 0.0),
    (-1.5, -1.2, -0.7, -0.9),
    (-1.0, -1.4, 0.0, 0.0),
    (-0.5, -1.6, 0.0, 0.0),
)
DPO_FILE = "trl/trainer/dpo_trainer.py"
CPO_FILE = "trl/experimental/cpo/cpo_trainer.py"
ORPO_FILE = "trl/experimental/orpo/orpo_trainer.py"
COMPONENTS = "grupo.algo.losses"
# file, expression in grupo, TRL's loss type and options
DPO_CASES: Sequence[tuple[str, str, str, Mapping[str, float]]] = (
    ("dpo", "dpo(beta=0.5)", "sigmoid", {"beta": 0.5}),
    ("hinge", "hinge(gamma=0.5)", "hinge", {"beta": 0.5}),
    ("ipo", "ipo(tau=0.5)", "ipo", {"beta": 0.5}),
    (
        "robust_dpo",
        "robust_dpo(beta=0.5, flip_rate=0.2)",
        "robust",
        {"beta": 0.5, "label_smoothing": 0.2},
    ),
    ("nca", "nca(beta=0.5)", "nca_pair", {"beta": 0.5}),
    (
        "bco",
        "bco().replace(loss=LabelledScore(LogRatio(), Logistic(0.5), NegatedLogistic(0.5)))",
        "bco_pair",
        {"beta": 0.5},
    ),
    ("ln_dpo", "ln_dpo(beta=2.0)", "sigmoid_norm", {"beta": 2.0}),
    (
        "preference_losses",
        "dpo().replace(loss=Preference(LogRatio(), ReverseLogistic(0.5, 0.1)))",
        "exo_pair",
        {"beta": 0.5, "label_smoothing": 0.1},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=LabelledScore(LogRatio(), SquaredError(1.0), SquaredError(-1.0)))",
        "sppo_hard",
        {"beta": 0.5},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=LabelledScore(LogRatio(), Sigmoid(0.5), Sigmoid(-0.5)))",
        "apo_zero",
        {"beta": 0.5},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=Preference(LogRatio(), Sigmoid(0.5))"
        " + LabelledScore(LogRatio(), Sigmoid(-0.5), no_loss))",
        "apo_down",
        {"beta": 0.5},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=Preference(LogRatio(), LogisticExponentialMix(0.5, 0.05)))",
        "discopop",
        {"beta": 0.5, "discopop_tau": 0.05},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=PairedQuantiles(Logistic(0.5, 0.1)))",
        "aot",
        {"beta": 0.5, "label_smoothing": 0.1},
    ),
    (
        "preference_losses",
        "dpo().replace(loss=UnpairedQuantiles(LogRatio(), Logistic(0.5, 0.1)))",
        "aot_unpaired",
        {"beta": 0.5, "label_smoothing": 0.1},
    ),
)


class RecordedModel:
    """A model that returns log-probabilities instead of computing them."""

    training = True
    is_gradient_checkpointing = False
    _modules: ClassVar[dict[str, Any]] = {}  # accelerate reads it

    def __init__(self, logps: Tensor) -> None:
        self.logps = logps

    def __call__(self, **inputs: Any) -> SimpleNamespace:
        zeros = torch.zeros_like(self.logps).detach()
        statistics = {"entropy": zeros, "mean_logits": zeros, "is_top1": zeros.bool()}
        return SimpleNamespace(log_probs=self.logps, **statistics)


def dpo_loss(policy: Tensor, loss_type: str, options: Mapping[str, float]) -> Tensor:
    """The loss of DPOTrainer; rows of `policy` are all chosen, then all rejected answers."""
    trainer = DPOTrainer.__new__(DPOTrainer)
    unchanged = SimpleNamespace(
        device=torch.device("cpu"), gather=lambda x: x, gather_for_metrics=lambda x: x
    )
    defaults = {"label_smoothing": 0.0, "discopop_tau": 0.05}
    values = {**defaults, **options}
    trainer.__dict__.update(
        model=RecordedModel(policy),
        ref_model=RecordedModel(in_two_halves(REFERENCE)),
        accelerator=unchanged,
        args=SimpleNamespace(
            gradient_checkpointing_kwargs=None, discopop_tau=values["discopop_tau"]
        ),
        aux_loss_enabled=False,
        ld_alpha=None,
        precompute_ref_logps=False,
        f_divergence_type="reverse_kl",
        loss_types=[loss_type],
        loss_weights=[1.0],
        beta=values["beta"],
        label_smoothing=values["label_smoothing"],
        use_weighting=False,
        _metrics=defaultdict(lambda: defaultdict(list)),
        _total_train_tokens=0,
        _tp_size=1,
        compute_loss_context_manager=nullcontext,
    )
    mask = torch.nn.functional.pad(in_two_halves(token_mask()), (1, 0)).long()  # of a prompt token
    inputs = {"input_ids": mask, "attention_mask": torch.ones_like(mask), "completion_mask": mask}
    return trainer._compute_loss(trainer.model, inputs, False)


def cpo_loss(policy: Tensor, loss_type: str, options: Mapping[str, float]) -> Tensor:
    """The preference term of CPOTrainer: SimPO, or with a sum "sigmoid" without a reference."""
    trainer = CPOTrainer.__new__(CPOTrainer)
    trainer.__dict__.update(
        loss_type=loss_type,
        alpha=0.0,
        beta=options["beta"],
        simpo_gamma=options.get("gamma", 0.0),
        label_smoothing=options.get("label_smoothing", 0.0),
        accelerator=SimpleNamespace(device=torch.device("cpu")),
    )
    logps = policy.sum(1)
    if loss_type == "simpo":
        logps = logps / in_two_halves(token_mask()).sum(1)
    return trainer.cpo_loss(*logps.chunk(2))[0].mean()


def orpo_loss(policy: Tensor, loss_type: str, options: Mapping[str, float]) -> Tensor:
    """The odds-ratio term of ORPOTrainer, which it subtracts from the NLL."""
    trainer = ORPOTrainer.__new__(ORPOTrainer)
    device = SimpleNamespace(device=torch.device("cpu"))
    trainer.__dict__.update(beta=options["beta"], accelerator=device)
    mean = policy.sum(1) / in_two_halves(token_mask()).sum(1)
    return -trainer.odds_ratio_loss(*mean.chunk(2))[0].mean()


def token_mask() -> list[list[float]]:
    """1 for each token of the answers, (6, 4)."""
    return [[float(column < length) for column in range(4)] for length in LENGTHS]


def in_two_halves(rows: Sequence[Sequence[float]]) -> Tensor:
    """Rows of chosen and rejected answers in turn, as all chosen, then all rejected ones."""
    x = torch.tensor(rows, dtype=torch.float64)
    return torch.cat([x[0::2], x[1::2]])


def case(
    code: str,
    loss_type: str,
    options: Mapping[str, float],
    loss_of: Callable[[Tensor, str, Mapping[str, float]], Tensor],
    source: str,
) -> dict[str, Any]:
    """The inputs, and TRL's loss and gradient, in the format of `tests/reference`."""
    mask = in_two_halves(token_mask())
    logp = ((in_two_halves(CHANGE) - 1) * mask).requires_grad_()
    loss = loss_of(logp * mask, loss_type, options)
    gradient = torch.autograd.grad(loss, logp)[0]
    in_turn = torch.stack([gradient[:3], gradient[3:]], 1).flatten(0, 1)
    rows = [row[:length] for row, length in zip(in_turn.tolist(), LENGTHS, strict=True)]
    return {
        "sources": [source],
        "variant": loss_type,
        "options": ", ".join(
            ["release 1.16.0", f"loss_type {loss_type}", *(f"{k} {v}" for k, v in options.items())]
        ),
        "code": code,
        "batch": {
            "group": [0, 0, 1, 1, 2, 2],
            "reward": [1.0, 0.0] * 3,
            "length": list(LENGTHS),
            "signals": {"logp@ref": [list(row) for row in REFERENCE]},
        },
        "policy": {"logp_change": [list(row) for row in CHANGE]},
        "expected": {
            "loss": {"numbers": loss.item()},
            "gradient": {"numbers": rows},
        },
    }


def write(folder: Path) -> None:
    """Write a file of cases for each method, and one for losses that no method has."""
    assert trl.__version__ == VERSION, f"TRL {trl.__version__}; the numbers are of {VERSION}"
    files: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, code, loss_type, options in DPO_CASES:
        data = case(code, loss_type, options, dpo_loss, "trl")
        files[name].append((DPO_FILE, data))
    simpo = case(
        "simpo(beta=2.0, margin_ratio=0.25)", "simpo", {"beta": 2.0, "gamma": 0.5}, cpo_loss, "trl"
    )
    files["simpo"].append((CPO_FILE, simpo))
    smoothed = {"beta": 0.5, "label_smoothing": 0.2}
    code = "cdpo().replace(loss=Preference(rollout_logp, Logistic(0.5, 0.2)))"
    files["cdpo"].append((CPO_FILE, case(code, "sigmoid", smoothed, cpo_loss, "trl")))
    code = "orpo().replace(loss=0.3 * Preference(log_odds, Logistic(1.0)))"
    odds = case(code, "odds ratio", {"beta": 0.3}, orpo_loss, "trl")
    for numbers in odds["expected"].values():
        numbers["rel"] = 1e-5  # TRL computes it in float32
    files["orpo"].append((ORPO_FILE, odds))
    functions = {
        DPO_FILE: "_compute_loss, the lines of each loss_type",
        CPO_FILE: "cpo_loss",
        ORPO_FILE: "odds_ratio_loss",
    }
    for name, cases in files.items():
        method = "dpo" if name == "preference_losses" else name
        path = cases[0][0]
        source = {
            "repository": "huggingface/trl",
            "commit": COMMIT,
            "functions": {path: functions[path]},
        }
        data = {
            "modules": [COMPONENTS, f"grupo.methods.{method}"],
            "sources": {"trl": source},
            "cases": [entry for _, entry in cases],
        }
        (folder / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for the JSON files")
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
