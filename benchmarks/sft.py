"""Compare supervised training of grupo and of TRL: the same model, rows, optimizer and precision.

    python -m benchmarks.sft --pairs 7 --precision float32 --trl benchmarks/.trl/bin/python

One process per library trains on the same rows in the same order, a step per request, and the
processes alternate. TRL runs twice: as it is, with padding, and with `packing=True`. The losses of
all steps are compared with those of TRL without packing, whose work is the same.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.models import model_folder, save_model
from benchmarks.summary import median_interval
from benchmarks.workloads import Shape

HERE = Path(__file__).parent
SHAPE = Shape()
ROWS_PER_STEP = 16
LENGTHS = (32, 512)  # tokens of a row, uniform
STEPS = 64
LEARNING_RATE = 1e-4
VARIANTS = ("grupo", "trl", "trl-packing")


def texts() -> list[str]:
    """The rows: words of the vocabulary, each a token."""
    rng = random.Random(0)
    lengths = [rng.randint(*LENGTHS) for _ in range(STEPS * ROWS_PER_STEP)]
    return [" ".join(f"w{rng.randint(2, 1000)}" for _ in range(n - 1)) for n in lengths]


def serve_grupo(precision: str) -> None:
    """Train with grupo, a step for each line of the input."""
    from benchmarks.grupo_worker import SequentialTasks
    from grupo.envs import Unscored
    from grupo.methods.sft import sft
    from grupo.models.causal_lm import CausalLM
    from grupo.recipe import Evaluation, Recipe
    from grupo.training.learner import Learner

    learner = Learner(
        Recipe(
            policy=CausalLM(str(model_folder(SHAPE)), dtype=precision, device="cpu"),
            env=Unscored(),
            tasks=[{"text": text} for text in texts()],
            eval_tasks=0,
            method=sft().replace(curriculum=SequentialTasks()),
            max_steps=10_000,
            prompts_per_step=ROWS_PER_STEP,
            learning_rate=LEARNING_RATE,
            evaluation=Evaluation(attempts=0),
        )
    )
    _send({"ready": True})
    for _ in sys.stdin:
        start = time.perf_counter()
        metrics = learner.step().metrics
        seconds = time.perf_counter() - start
        _send({"seconds": seconds, "loss": metrics["loss"], "tokens": metrics["tokens/trained"]})


def serve_trl(precision: str, *, packing: bool) -> None:
    """Train with TRL's SFTTrainer, a step for each line of the input."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    class Steps(TrainerCallback):
        start = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if not sys.stdin.readline():
                raise SystemExit
            self.start = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.seconds = time.perf_counter() - self.start

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in logs:
                tokens = state.num_input_tokens_seen or 0
                _send({"seconds": self.seconds, "loss": logs["loss"], "tokens": tokens})

    tokenizer_folder = str(model_folder(SHAPE))
    config = SFTConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=precision == "bfloat16",
        gradient_checkpointing=False,
        per_device_train_batch_size=4 if packing else ROWS_PER_STEP,
        max_length=1024 if packing else LENGTHS[1] + 1,
        packing=packing,
        max_steps=10_000,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        adam_beta2=0.99,
        weight_decay=0.0,
        max_grad_norm=1.0,
        logging_steps=1,
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )

    class InOrder(SFTTrainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(self.train_dataset)

    trainer = InOrder(
        model=tokenizer_folder,
        args=config,
        train_dataset=Dataset.from_list([{"text": text} for text in texts()]),
        callbacks=[Steps()],
    )
    _send({"ready": True, "rows_of_packs": len(trainer.train_dataset)})
    trainer.train()


def _send(measurements: dict[str, Any]) -> None:
    print("@" + json.dumps(measurements), flush=True)


class Worker:
    """A process that trains a step per request."""

    def __init__(self, variant: str, precision: str, python: Path) -> None:
        import os
        import subprocess

        interpreter = sys.executable if variant == "grupo" else str(python)
        self.process = subprocess.Popen(
            [interpreter, "-m", "benchmarks.sft", "--worker", variant, "--precision", precision],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=HERE.parent,
            env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        )
        self.startup = self._read()

    def step(self) -> dict[str, Any]:
        """The measurements of the next step."""
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        raise RuntimeError("a worker ended")

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def measure(precision: str, pairs: int, python: Path) -> dict[str, Any]:
    """Seconds of every step by library, after one that warms up, and the losses."""
    workers = {name: Worker(name, precision, python) for name in VARIANTS}
    steps: dict[str, list[dict[str, Any]]] = {name: [] for name in VARIANTS}
    try:
        for number in range(pairs + 1):
            order = VARIANTS if number % 2 else VARIANTS[::-1]
            for name in order:
                steps[name].append(workers[name].step())
    finally:
        for worker in workers.values():
            worker.close()
    return _summary(steps, workers["trl-packing"].startup["rows_of_packs"])


def _summary(steps: dict[str, list[dict[str, Any]]], num_packs: int) -> dict[str, Any]:
    seconds = {name: [step["seconds"] for step in steps[name][1:]] for name in VARIANTS}
    # a step of TRL's packs has 4 of them: seconds of the rows of a step of the others
    rows_per_pack_step = 4 * STEPS * ROWS_PER_STEP / num_packs
    seconds["trl-packing"] = [
        s * ROWS_PER_STEP / rows_per_pack_step for s in seconds["trl-packing"]
    ]
    fastest = min(("trl", "trl-packing"), key=lambda name: median(seconds[name]))
    ratios = [b / a for a, b in zip(seconds["grupo"], seconds[fastest], strict=True)]
    losses = {name: [step["loss"] for step in steps[name]] for name in ("grupo", "trl")}
    differences = [abs(a / b - 1) for a, b in zip(losses["grupo"], losses["trl"], strict=True)]
    low, high = median_interval(ratios)
    return {
        "pairs": len(ratios),
        "fastest": fastest,
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "seconds": {name: median(values) for name, values in seconds.items()},
        "all_seconds": seconds,
        "losses": losses,
        "loss_difference": max(differences),
        "tokens": steps["grupo"][1]["tokens"],
    }


def page(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    lines = [
        "# Supervised training",
        "",
        f"A Llama of {SHAPE.layers} layers and {SHAPE.hidden_size} dimensions, all weights, AdamW,"
        f" {ROWS_PER_STEP} rows of {LENGTHS[0]} to {LENGTHS[1]} tokens in a step, on 2 CPU cores"
        " that other programs used at the same time. `python -m benchmarks.sft` alternates the"
        " libraries; the ratio is the median over pairs, with its 95 % bootstrap interval. TRL is"
        " the faster of its default and `packing=True`. Losses are compared with TRL's default.",
        "",
        "| precision | grupo, s | TRL, s | TRL with packing, s | TRL / grupo | pairs"
        " | largest relative difference of a loss |",
        "|---|---|---|---|---|---|---|",
    ]
    for precision, x in results.items():
        s = x["seconds"]
        lines.append(
            f"| {precision} | {s['grupo']:.2f} | {s['trl']:.2f} | {s['trl-packing']:.2f}"
            f" | {x['ratio']:.2f} [{x['low']:.2f}, {x['high']:.2f}] | {x['pairs']}"
            f" | {x['loss_difference']:.1e} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", choices=VARIANTS)
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--trl", type=Path, default=HERE / ".trl" / "bin" / "python")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "sft")
    args = parser.parse_args()
    if args.worker == "grupo":
        return serve_grupo(args.precision)
    if args.worker:
        return serve_trl(args.precision, packing=args.worker == "trl-packing")
    save_model(SHAPE)
    file = args.out.with_suffix(".json")
    results = json.loads(file.read_text()) if file.is_file() else {}
    results[args.precision] = measure(args.precision, args.pairs, args.trl)
    file.write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(page(results))
    return None


if __name__ == "__main__":
    main()
