"""The toy vision-language model: its training, its folder, and its tokens."""

import json
import runpy
from dataclasses import replace
from random import Random

import pytest

from grupo.core.media import Image
from grupo.core.types import Rollout
from grupo.models.multimodal.media_tokens import FIRST
from grupo.models.prompt_limit import read_prompt_limit
from grupo.models.vision_lm import VisionLM
from grupo.tasks.scenes import SceneQuestions, picture_prompt
from grupo.toy import quickstart
from grupo.toy.picture_examples import SceneExamples
from grupo.toy.vision_lm import (
    IGNORED,
    IMAGE_TOKEN,
    ToyVisionLM,
    collate_examples,
    ensure_trained_vision,
    train_vision,
)
from grupo.training.callbacks import NullCallback
from grupo.training.start import run_training
from tests.helpers.paths import ROOT

QUICK = ToyVisionLM(hidden_size=32, tower_layers=1, text_layers=1, batch_size=8, max_steps=2)


class RecordingCallback(NullCallback):
    """A callback that records the messages."""

    def __init__(self):
        self.messages = []

    def on_message(self, message):
        self.messages.append(message)


@pytest.mark.slow
def test_the_loss_falls():
    callback = RecordingCallback()
    quick = replace(QUICK, max_steps=101)
    train_vision(quick, quick.processor(), callback)
    first, *_, last = [float(line.rpartition(" ")[2]) for line in callback.messages]
    assert first > 4.0  # about 140 tokens are equally likely
    assert last < 0.5 * first


def test_words_of_all_questions_and_captions_are_tokens_of_their_own():
    tokenizer, examples, rng = QUICK.tokenizer(), SceneExamples(question_frac=0.5), Random(0)
    for _ in range(200):
        example = examples.draw(rng)
        for text in (example.prompt, example.answer):
            tokens = tokenizer.tokenize(text)
            assert "".join(tokens) == text
            assert not any(len(token) == 1 and token.isalpha() for token in tokens)


@pytest.mark.parametrize("pictures", [1, 2])
def test_prompts_of_the_training_are_those_of_the_policy_and_only_answers_have_labels(
    pictures, tmp_path, monkeypatch
):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    folder = ensure_trained_vision(QUICK)
    mtime = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained_vision(QUICK) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == mtime
    policy = VisionLM(str(folder), max_new_tokens=4).build()
    drawn = QUICK.examples.draw(Random(1))
    example = replace(drawn, pictures=drawn.pictures * pictures)
    batch = collate_examples([example], QUICK.processor(), QUICK.picture_tokens)
    tokens, labels = batch["input_ids"][0], batch["labels"][0]
    prompt = tokens[labels == IGNORED].tolist()
    observation = picture_prompt([*map(Image.from_pixels, example.pictures)], example.prompt)
    image_id = policy.chat_tokenizer.tokenizer.get_vocab()[IMAGE_TOKEN]
    encoded = policy.chat_tokenizer.encode_observation(Rollout(), observation)
    assert [image_id if token >= FIRST else token for token in encoded] == prompt
    key = next(token for token in encoded if token >= FIRST)
    assert prompt.count(image_id) == sum(token >= FIRST for token in encoded) == 16 * pictures, key
    trained = labels[labels != IGNORED].tolist()
    assert policy.chat_tokenizer.tokenizer.decode(trained) == f"{example.answer}<end>"


@pytest.mark.slow
def test_a_recipe_of_the_toy_model_makes_it_first_and_trains_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    monkeypatch.setattr(quickstart, "TOY_VISION_MODEL", QUICK)
    recipe = runpy.run_path(str(ROOT / "recipes" / "vision" / "shapes.py"))["RECIPE"]
    assert quickstart.needs_toy_model(recipe)
    quickstart.ensure_toy_model(recipe)
    assert not quickstart.needs_toy_model(recipe)
    short = recipe.replace(
        max_steps=2, prompts_per_step=2, eval_tasks=SceneQuestions(2, seed=5), save_every=2
    )
    run_training(short, tmp_path / "run")
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in rows if '"reward/mean"' in row] == [1, 2]


def test_prompts_with_pictures_are_measured_before_the_policy_is_built(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    spec = VisionLM(str(ensure_trained_vision(QUICK)), max_new_tokens=4)
    limit = read_prompt_limit(spec)
    task = SceneQuestions(1, seed=5).load()[0]
    tokens = spec.build().chat_tokenizer.encode_observation(Rollout(), task.prompt)
    assert limit is not None
    assert len(limit.encode(Rollout(), task.prompt)) == len(tokens) > 16
