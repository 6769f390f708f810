from dataclasses import replace

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from grupo.core.errors import ConfigError
from grupo.toy import ensure_trained, train_toy_model
from grupo.toy.quickstart import TOY_MODEL

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


def test_a_seedling_grows_into_a_folder_that_transformers_loads(tmp_path):
    folder = train_toy_model(SMALL, tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "State the final answer to the following arithmetic problem: 4 + 3 - 12 =\n4 +3=7"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert model.config.vocab_size == len(tokenizer)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model"
    ]  # nothing half made is left


def test_the_same_seed_grows_the_same_model_and_another_seed_another(tmp_path):
    weights = [
        AutoModelForCausalLM.from_pretrained(
            train_toy_model(seedling, tmp_path / name)
        ).state_dict()
        for name, seedling in (("a", SMALL), ("b", SMALL), ("c", replace(SMALL, seed=1)))
    ]
    key = "model.layers.0.mlp.up_proj.weight"
    assert weights[0][key].equal(weights[1][key])
    assert not weights[0][key].equal(weights[2][key])


def test_a_grown_model_is_kept_and_not_grown_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    first = ensure_trained(SMALL)
    made = (first / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained(SMALL) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == made
    assert replace(SMALL, seed=1).model_dir != first


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"out: .* exists"):
        train_toy_model(SMALL, tmp_path)


def test_it_stops_once_it_solves_its_share(tmp_path):
    train_toy_model(replace(SMALL, target_accuracy=0.0, max_steps=50), tmp_path / "model")
    import json

    come_to = json.loads((tmp_path / "model" / "grown.json").read_text())
    assert come_to["steps"] < 50
