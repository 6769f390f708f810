"""Compare GRPO on pictures of grupo and of TRL: the same model, pictures, lengths and precision.

    python -m benchmarks.vision --pairs 7 --trl benchmarks/.trl/bin/python

Random models of two families with the processors of transformers: a LLaVA (CLIP tower and Llama)
and a Qwen2-VL. One process per library trains on groups of 8 answers to a question about a picture,
a step per request, and the processes alternate. Both train the language model alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.summary import median_interval

HERE = Path(__file__).parent
LIBRARIES = ("grupo", "trl")
FAMILIES = ("llava", "qwen2_vl")
TEXT = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
}
PROMPTS, GROUP_SIZE, MAX_NEW_TOKENS = 8, 8, 32
STEPS = 32
PIXELS = 64
QUESTION = "How many circles are in the picture, and which colours do they have?"


def pictures() -> list[np.ndarray]:
    """Random pictures of all prompts."""
    rng = np.random.default_rng(0)
    size = (STEPS * PROMPTS, PIXELS, PIXELS, 3)
    return list(rng.integers(0, 256, size, dtype=np.uint8))


def score(text: str) -> float:
    """The reward: how many letters of the answer are vowels."""
    return float(sum(letter in "aeiou" for letter in text))


def serve_grupo(folder: str, precision: str) -> None:
    """Train with grupo, a step for each line of the input."""
    from benchmarks.grupo_worker import SequentialTasks
    from grupo.core.media import Image
    from grupo.envs import RewardTerm, SingleTurn
    from grupo.methods.grpo import grpo
    from grupo.models.vision_lm import VisionLM
    from grupo.recipe import Evaluation, Recipe
    from grupo.tasks import InMemoryTasks
    from grupo.training.learner import Learner

    def vowels(task: Any, rollout: Any) -> float:
        return score(rollout.text)

    def row(pixels: np.ndarray) -> dict[str, Any]:
        content = [
            {"type": "image", "image": Image.from_pixels(pixels)},
            {"type": "text", "text": QUESTION},
        ]
        return {"prompt": [{"role": "user", "content": content}]}

    learner = Learner(
        Recipe(
            policy=VisionLM(folder, dtype=precision, device="cpu", max_new_tokens=MAX_NEW_TOKENS),
            env=SingleTurn((RewardTerm("vowels", vowels),)),
            tasks=InMemoryTasks(list(map(row, pictures()))),
            eval_tasks=0,
            method=grpo(group_size=GROUP_SIZE, kl_coef=0.0).replace(curriculum=SequentialTasks()),
            max_steps=10_000,
            prompts_per_step=PROMPTS,
            learning_rate=1e-6,
            evaluation=Evaluation(attempts=0),
        )
    )
    _send({"ready": True})
    for _ in sys.stdin:
        start = time.perf_counter()
        metrics = learner.step().metrics
        _send({"seconds": time.perf_counter() - start, "tokens": metrics["tokens/trained"]})


def serve_trl(folder: str, precision: str) -> None:
    """Train with TRL's GRPOTrainer, a step for each line of the input."""
    from datasets import Dataset
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from grupo.models.multimodal.missing_video import without_video_processors

    class Steps(TrainerCallback):
        start = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if not sys.stdin.readline():
                raise SystemExit
            self.start = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            _send({"seconds": time.perf_counter() - self.start, "tokens": trainer.num_tokens})

    class Trainer(GRPOTrainer):
        num_tokens = 0

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            batch = super()._generate_and_score_completions(inputs)
            self.num_tokens = int(batch["completion_mask"].sum())
            return batch

    def vowels(completions: Any, **_: Any) -> list[float]:
        return [score(completion[0]["content"]) for completion in completions]

    model = AutoModelForImageTextToText.from_pretrained(folder, dtype="float32")
    with without_video_processors():
        processor = AutoProcessor.from_pretrained(folder)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("language_model" in name or "lm_head" in name)
    prompt = [{"role": "user", "content": QUESTION}]
    rows = [{"prompt": prompt, "image": Image.fromarray(x)} for x in pictures()]
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=precision == "bfloat16",
        gradient_checkpointing=False,
        loss_type="grpo",
        beta=0.0,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        per_device_train_batch_size=PROMPTS * GROUP_SIZE,
        num_generations=GROUP_SIZE,
        max_completion_length=MAX_NEW_TOKENS,
        max_steps=10_000,
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        report_to=[],
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        processing_class=processor,
        args=config,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=vowels,
        callbacks=[Steps()],
    )
    _send({"ready": True})
    trainer.train()


def _send(measurements: dict[str, Any]) -> None:
    print("@" + json.dumps(measurements), flush=True)


class Worker:
    """A process that trains a step per request."""

    def __init__(self, library: str, folder: str, precision: str, python: Path) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read when the process ends
        interpreter = sys.executable if library == "grupo" else str(python)
        options = ("--worker", library, "--folder", folder, "--precision", precision)
        self.process = subprocess.Popen(
            [interpreter, "-m", "benchmarks.vision", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=HERE.parent,
            env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        )
        self._read()

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
        self.errors.seek(0)
        raise RuntimeError(f"a worker ended: {self.errors.read()[-2000:]}")

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def measure(family: str, precision: str, pairs: int, python: Path) -> dict[str, Any]:
    """Seconds of every step by library, after one that warms up."""
    from tests.helpers import vision_families

    folder = str(vision_families.save_model(Path(tempfile.mkdtemp()) / family, family, **TEXT))
    workers = {name: Worker(name, folder, precision, python) for name in LIBRARIES}
    steps: dict[str, list[dict[str, Any]]] = {name: [] for name in LIBRARIES}
    try:
        for number in range(pairs + 1):
            for name in LIBRARIES if number % 2 else LIBRARIES[::-1]:
                steps[name].append(workers[name].step())
    finally:
        for worker in workers.values():
            worker.close()
    seconds = {name: [step["seconds"] for step in steps[name][1:]] for name in LIBRARIES}
    ratios = [b / a for a, b in zip(seconds["grupo"], seconds["trl"], strict=True)]
    low, high = median_interval(ratios)
    return {
        "pairs": pairs,
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "seconds": {name: median(values) for name, values in seconds.items()},
        "tokens": {name: median(x["tokens"] for x in steps[name][1:]) for name in LIBRARIES},
    }


def page(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    lines = [
        "# GRPO on pictures",
        "",
        f"Random models with {TEXT['num_hidden_layers']} layers of {TEXT['hidden_size']}"
        f" dimensions, {PROMPTS} pictures of {PIXELS} x {PIXELS} pixels in a step,"
        f" {GROUP_SIZE} answers of up to {MAX_NEW_TOKENS} tokens to"
        " each, all weights of the language model, on 2 CPU cores."
        " `python -m benchmarks.vision` alternates the libraries; the ratio is the median over"
        " pairs, with its 95 % bootstrap interval.",
        "",
        "| model | precision | grupo, s | TRL, s | TRL / grupo | pairs | tokens of grupo, of TRL |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, x in results.items():
        family, precision = name.split()
        seconds, tokens = x["seconds"], x["tokens"]
        lines.append(
            f"| {family} | {precision} | {seconds['grupo']:.2f} | {seconds['trl']:.2f}"
            f" | {x['ratio']:.2f} [{x['low']:.2f}, {x['high']:.2f}] | {x['pairs']}"
            f" | {tokens['grupo']:.0f}, {tokens['trl']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run a worker, or measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", choices=LIBRARIES)
    parser.add_argument("--folder", default="")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--trl", type=Path, default=HERE / ".trl" / "bin" / "python")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "vision")
    args = parser.parse_args()
    if args.worker:
        serve = serve_grupo if args.worker == "grupo" else serve_trl
        serve(args.folder, args.precision)
        return
    file = args.out.with_suffix(".json")
    results = json.loads(file.read_text()) if file.exists() else {}
    for family in args.families:
        result = measure(family, args.precision, args.pairs, args.trl)
        results[f"{family} {args.precision}"] = result
        file.write_text(json.dumps(results, indent=1))
        args.out.with_suffix(".md").write_text(page(results))
        print(f"{family}: {result['ratio']:.2f} [{result['low']:.2f}, {result['high']:.2f}]")


if __name__ == "__main__":
    main()
