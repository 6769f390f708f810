"""The toy language model: its training, its files and its folder."""

import json
from dataclasses import replace

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from grupo.toy import ensure_trained, train_toy_model
from grupo.toy.quickstart import TOY_MODEL
from grupo.util.errors import ConfigError

SMALL = replace(
    TOY_MODEL,
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    intermediate_size=32,
    prompts_per_step=4,
    max_steps=3,
    eval_every=2,
    eval_tasks=replace(TOY_MODEL.eval_tasks, size=4),
)


@pytest.mark.slow
def test_a_trained_toy_model_loads_with_transformers(tmp_path):
    folder = train_toy_model(SMALL, tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "State the final answer to the following arithmetic problem: 4 + 3 - 12 =\n4 +3=7"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert model.config.vocab_size == len(tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # no temporary files remain


@pytest.mark.slow
def test_equal_seeds_train_equal_models_and_other_seeds_others(tmp_path):
    toy_models = {"a": SMALL, "b": SMALL, "c": replace(SMALL, seed=1)}
    folders = [train_toy_model(model, tmp_path / name) for name, model in toy_models.items()]
    weights = [AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in folders]
    key = "model.layers.0.mlp.up_proj.weight"
    assert weights[0][key].equal(weights[1][key])
    assert not weights[0][key].equal(weights[2][key])


@pytest.mark.slow
def test_a_trained_model_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    first = ensure_trained(SMALL)
    mtime = (first / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained(SMALL) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == mtime
    assert replace(SMALL, seed=1).model_dir != first


def test_a_nonempty_folder_is_a_config_error(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"out: .* exists"):
        train_toy_model(SMALL, tmp_path)


@pytest.mark.slow
def test_training_stops_at_the_target_accuracy(tmp_path):
    train_toy_model(replace(SMALL, target_accuracy=0.0, max_steps=50), tmp_path / "model")
    summary = json.loads((tmp_path / "model" / "toy_model.json").read_text())
    assert summary["steps"] < 50
