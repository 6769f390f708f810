"""Exported checkpoints, their model cards, and the upload to a hub on this machine."""

import json

import pytest
from huggingface_hub import ModelCard, constants
from transformers import AutoModelForCausalLM

from grupo.training.resume.load_run import load_policy
from tests.helpers.fake_hub import TOKEN, fake_hub


@pytest.fixture
def hub(monkeypatch):
    with fake_hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def test_a_model_card_holds_recipe_data_and_results(grupo, home, tmp_path):
    assert grupo("export", "run", str(tmp_path / "out"))[0] == 0
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.pipeline_tag == "text-generation"
    assert card.data.tags == ["grupo", "grpo", "reinforcement-learning"]
    assert card.data.base_model is None  # a folder on this machine
    _, recipe = load_policy(home / "run")
    assert f"    learning_rate = {recipe.learning_rate}\n" in card.text
    assert "    tasks = DatasetTasks(path='tasks.jsonl'" in card.text
    assert "2 steps" in card.text
    assert "| 0 | " in card.text
    assert "| 2 | " in card.text


def test_the_results_in_the_metadata_are_those_of_the_summary(grupo, home, tmp_path):
    assert grupo("export", "run", str(tmp_path / "out"))[0] == 0
    after = json.loads((home / "run" / "summary.json").read_text())["held_out"]["after"]
    results = ModelCard.load(tmp_path / "out" / "README.md").data.eval_results
    assert {result.metric_name: result.metric_value for result in results} == {
        "tasks solved, greedy": round(after["greedy"], 6),
        "tasks solved, sampled": round(after["sampled"], 6),
    }


def test_a_model_is_uploaded_with_its_card(grupo, hub, tmp_path):
    out = tmp_path / "out"
    arguments = ["--push-to-hub", "someone/digits", "--private"]
    code, text, err = grupo("export", "run", str(out), *arguments)
    assert (code, err) == (0, "")
    assert text == f"The model is at {hub.url}/someone/digits\nThe model is in {out}\n"
    (repository,) = hub.repositories
    assert repository["name"] == "digits"
    assert repository.get("visibility", "private") == "private"
    assert hub.files == {path.name: path.read_bytes() for path in out.iterdir()}
    card = hub.files["README.md"].decode()
    assert {ModelCard(text).data.model_name for text in (*hub.cards, card)} == {"someone/digits"}
    assert hub.cards  # its metadata was sent for validation
    AutoModelForCausalLM.from_pretrained(out)


@pytest.mark.parametrize(
    ("name", "token", "message"),
    [
        ("some one/x", TOKEN, "grupo: push_to_hub: 'some one/x'. Allowed: USER/MODEL."),
        ("someone/x", "hf_another", "grupo: push_to_hub: Nothing was exported: "),
        ("someone/x", "", "grupo: push_to_hub: Nothing was exported: there is no access token."),
    ],
)
def test_name_and_token_are_checked_before_the_export(
    name, token, message, grupo, hub, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    code, _, err = grupo("export", "run", str(tmp_path / "out"), "--push-to-hub", name)
    assert code in (2, 3)
    assert err.startswith(message)
    assert not (tmp_path / "out").exists()
    assert hub.repositories == []


def test_a_failed_upload_leaves_the_exported_model(grupo, hub, tmp_path, monkeypatch):
    hub.full = True
    out = tmp_path / "out"
    code, _, err = grupo("export", "run", str(out), "--push-to-hub", "someone/x")
    assert code == 3
    assert err.startswith(f"grupo: push_to_hub: The model is in {out}, but was not uploaded: ")
    assert (out / "model.safetensors").is_file()


def test_a_hub_that_cannot_be_reached_is_one_message(grupo, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    code, _, err = grupo("export", "run", str(tmp_path / "out"), "--push-to-hub", "someone/x")
    assert (code, err.count("\n")) == (3, 1)


def test_an_earlier_checkpoint_is_exported_and_others_are_refused(grupo, home, tmp_path):
    code, _, err = grupo("export", "run", str(tmp_path / "out"), "--checkpoint", "7")
    assert code == 2
    assert "has none of step 7. Allowed: best, last or one of the steps 2." in err
    code, _, err = grupo("export", "run", str(tmp_path / "out"), "--weights", "ema")
    assert (code, err) == (
        2,
        "grupo: weights: 'ema', and the run has no ema. Allowed: trained.\n",
    )
    assert grupo("eval", "run", "--attempts", "1", "--checkpoint", "best", "--json")[0] == 0
