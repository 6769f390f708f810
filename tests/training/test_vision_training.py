"""Training on pictures: exact resume, repeated runs, and a method that reads masked images."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.methods.papo import papo
from grupo.models.base import AuxModel
from grupo.models.lora import Lora
from grupo.models.multimodal.views import MaskedImages
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Evaluation, Recipe
from grupo.tasks import DatasetTasks
from grupo.training.callbacks import NullCallback
from grupo.training.learner import Learner
from grupo.training.start import resume_training, run_training
from tests.helpers import vision_families
from tests.helpers.media_prompts import random_media
from tests.helpers.run_outcomes import differences, outcome


class InterruptAfterStep2(NullCallback):
    """Interrupts the run when its second step is logged."""

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        if step == 2:
            raise KeyboardInterrupt


def vowels(task: Task, rollout: Rollout) -> float:
    """How many letters of the answer are vowels."""
    return float(sum(letter in "aeiou" for letter in rollout.text))


def save_tasks(folder: Path) -> Path:
    """A file of questions about pictures, which lie beside it."""
    lines = list[str]()
    for seed in range(6):
        (folder / f"{seed}.png").write_bytes(random_media("image", seed).data)
        message = {"role": "user", "content": f"Question {seed}?"}
        lines.append(json.dumps({"prompt": [message], "image": f"{seed}.png"}))
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(lines))
    return file


def recipe_of(folder: Path, **fields: Any) -> Recipe:
    """Three steps of two groups of pictures."""
    policy = VisionLM(str(folder), max_new_tokens=6, **fields)
    return Recipe(
        policy,
        SingleTurn((RewardTerm("vowels", vowels),)),
        DatasetTasks(str(save_tasks(folder))),
        method=grpo(group_size=4),
        max_steps=3,
        prompts_per_step=2,
        learning_rate=1e-3,
        eval_tasks=1,
        save_every=1,
        evaluation=Evaluation(attempts=1),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("llava", {}),
        ("llava", {"train_projector": True, "train_tower": True}),
        ("qwen3_vl", {}),
        ("qwen2_vl", {"lora": Lora(4)}),
    ],
    ids=["llava", "llava-all", "qwen3-vl", "qwen2-vl-lora"],
)
def test_an_interrupted_run_on_pictures_ends_with_the_same_bits(family, fields, tmp_path: Path):
    vision_families.save_model(tmp_path / "model", family)
    recipe = recipe_of(tmp_path / "model", **fields)
    run_training(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe, tmp_path / "cut", InterruptAfterStep2())
    resume_training(tmp_path / "cut")
    assert differences(outcome(tmp_path / "whole"), outcome(tmp_path / "cut")) == []


@pytest.mark.slow
def test_papo_compares_the_policy_with_masked_images(tmp_path: Path):
    vision_families.save_model(tmp_path / "model", "llava")
    recipe = recipe_of(tmp_path / "model").replace(method=papo(group_size=4))
    masked, same = (
        Learner(recipe.replace(aux_models=(AuxModel("masked", prompt_override=MaskedImages(x)),)))
        for x in (0.6, 0.0)
    )
    name = "policy/kl_masked"  # above 0 without a mask, because the policy changes in a step
    assert masked.step().metrics[name] > 3 * same.step().metrics[name]
