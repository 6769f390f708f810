"""Commands that read a finished run: eval, rollouts, doctor, export; and those about methods."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grupo.training.resume.load_run import load_policy


def read_journal(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_eval_reproduces_the_numbers_of_the_summary(grupo, home):
    code, out, err = grupo("eval", "run", "--attempts", "2", "--json")
    assert (code, err) == (0, "")
    assert (
        json.loads(out)
        == json.loads((home / "run" / "summary.json").read_text())["held_out"]["after"]
    )


def test_eval_of_a_model_counts_success_by_its_reward(grupo):
    tasks = ["--tasks", "tasks.jsonl", "--count", "3", "--attempts", "4"]
    fields = ["--policy.max-new-tokens", "8", "--evaluation.success.min-reward", "-1.0"]
    command = ["eval", "--model", "model", "--reward", "rewards.py:digits", "--json"]
    code, out, _ = grupo(*command, *tasks, *fields)  # any reward is at least -1
    names = ("greedy", "sampled", "pass@1", "pass@2", "pass@4")
    assert code == 0
    result = json.loads(out)
    assert 0 < result["tokens_per_answer"]["read"] < result["tokens_per_answer"]["generated"] <= 8
    assert result == {
        **dict.fromkeys(names, 1.0),
        "intervals": {name: [1.0, 1.0] for name in names},
        "failed": 0,
        "tokens_per_answer": result["tokens_per_answer"],
    }


def test_eval_warns_of_rollouts_that_could_not_be_scored(grupo):
    code, out, err = grupo(
        "eval", "run", "--reward", "rewards.py:nothing", "--attempts", "2", "--json"
    )
    assert code == 0
    assert json.loads(out)["failed"] == 4 * (1 + 2)  # tasks x (greedy and sampled)
    assert err == "Warning: a reward failed for 12 rollouts; they count as not solved.\n"


def test_rollouts_are_selected_by_reward(grupo, home):
    rewards = sorted(line["reward"] for line in read_journal(home / "run" / "rollouts.jsonl"))
    best = json.loads(grupo("rollouts", "run", "--best", "2", "--json")[1])
    assert [line["reward"] for line in best] == rewards[:-3:-1]
    worst = json.loads(grupo("rollouts", "run", "--worst", "1", "--json")[1])
    assert [line["reward"] for line in worst] == rewards[:1]
    code, out, _ = grupo("rollouts", "run", "--step", "1", "--limit", "2")
    assert code == 0
    assert out.count("step 1") == 2


def test_rollouts_are_written_to_parquet(grupo, home, tmp_path):
    import pyarrow.parquet

    file = tmp_path / "a.parquet"
    arguments = ["rollouts", "run", "--parquet", str(file), "--step", "1"]
    assert grupo(*arguments) == (0, f"8 rollouts are in {file}\n", "")
    rows = pyarrow.parquet.read_table(file).to_pylist()
    journal = [line for line in read_journal(home / "run" / "rollouts.jsonl") if line["step"] == 1]
    assert [row["text"] for row in rows] == [line["text"] for line in journal]
    assert [row["reward/digits"] for row in rows] == [
        line["reward_terms"]["digits"] for line in journal
    ]


def test_rollouts_are_written_to_git(grupo, home, tmp_path):
    folder = tmp_path / "git"
    command = ["rollouts", "run", "--best", "2", "--git", str(folder)]
    assert grupo(*command) == (0, f"2 commits are in {folder}\n", "")
    best = json.loads(grupo("rollouts", "run", "--best", "1", "--json")[1])[0]
    assert (folder / "attempt.txt").read_text() == best["text"]
    code, _, err = grupo(*command, "--parquet", "a.parquet")
    assert (code, err) == (2, "grupo: git: Allowed: one of --parquet and --git.\n")


def test_doctor_prints_findings_as_text_and_as_json(grupo):
    findings = json.loads(grupo("doctor", "run", "--json")[1])
    assert {"name", "severity", "details", "causes", "suggestions"} <= set(findings[0])
    assert findings[0]["details"].split()[0] in grupo("doctor", "run")[1]


def test_export_writes_a_folder_that_transformers_loads(grupo, home, tmp_path):
    code, out, err = grupo("export", "run", str(tmp_path / "out"))
    assert (code, out, err) == (0, f"The model is in {tmp_path / 'out'}\n", "")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    policy, _ = load_policy(home / "run")
    weights = dict(loaded.named_parameters())
    assert all(torch.equal(weights[name], x) for name, x in policy.weights().items())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.decode(tokenizer("2 + 2")["input_ids"]) == "2 + 2"


def test_methods_are_printed_as_table_and_as_json(grupo):
    entries = json.loads(grupo("methods", "--json")[1])
    assert {"grpo", "dapo", "dr_grpo"} <= {entry["key"] for entry in entries}
    (dapo,) = json.loads(grupo("methods", "2503.14476", "--json")[1])
    assert dapo["changes"]["loss"] == "Clip(clip_low=0.2, clip_high=0.28)"
    assert {"name", "title", "arxiv", "changes", "catalogue", "checked"} <= set(dapo)
    assert "Clip(clip_low=0.2, clip_high=0.28)" in grupo("methods", "dapo")[1]
    assert [e["key"] for e in json.loads(grupo("methods", "2507.18071", "--json")[1])] == [
        "gspo",
        "gspo_token",
    ]


@pytest.mark.slow
def test_methods_list_prints_the_same_as_methods(grupo):
    assert grupo("methods", "list", "--json") == grupo("methods", "--json")
    assert grupo("methods", "list", "dr_grpo") == grupo("methods", "dr_grpo")
    assert grupo("methods", "list") == grupo("methods")


def test_methods_list_json_has_the_fields_of_an_entry(grupo):
    (entry,) = json.loads(grupo("methods", "dr_grpo", "--json")[1])
    assert entry["tags"] == ["advantage", "aggregation", "length"]
    assert set(entry) == {
        *("key", "name", "claim", "authors", "year", "arxiv", "venue", "title", "example"),
        *("changes", "use", "tags", "trl", "verl", "checked", "catalogue", "shown", "level"),
        *("source", "plan", "missing", "deviations", "audit", "equals_grpo_when", "reward_range"),
    }


def test_methods_list_json_has_plan_and_reward_range(grupo):
    entries = {key: json.loads(grupo("methods", key, "--json")[1])[0] for key in ("gspo", "dapo")}
    plan = entries["gspo"]["plan"]
    assert (plan["code"], plan["updates_per_step"]) == ("Updates(epochs=1, minibatches=4)", 4)
    assert set(plan) == {"code", "updates_per_step", "source"}
    assert [entry["reward_range"] for entry in entries.values()] == [None, [0.0, 1.0]]


def test_methods_list_prints_source_plan_and_equality(grupo):
    text = " ".join(grupo("methods", "list", "gspo")[1].replace("│", " ").split())
    assert "source: " in text
    assert "plan: Updates(epochs=1, minibatches=4) (4 updates per step)" in text
    assert "when there is one update per step" in text


def listed_methods(grupo, *arguments: str) -> list[dict]:
    code, out, err = grupo("methods", "list", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.slow
def test_methods_list_prints_the_methods_that_have_all_tags(grupo):
    everything = listed_methods(grupo)
    length = listed_methods(grupo, "--tag", "length")
    assert length == [entry for entry in everything if "length" in entry["tags"]]
    assert 0 < len(length) < len(everything)
    both = listed_methods(grupo, "--tag", "length", "--tag", "critic")
    assert both == [entry for entry in length if "critic" in entry["tags"]]
    assert "vapo" in {entry["key"] for entry in both}
    code, out, _ = grupo("methods", "list", "--tag", "length")
    assert code == 0
    assert "dr_grpo" in out
    assert "icepop" not in out


def test_methods_list_without_a_match_prints_so(grupo):
    assert listed_methods(grupo, "dapo", "--tag", "critic") == []
    printed = grupo("methods", "list", "dapo", "--tag", "critic")[1]
    assert printed == "No method has all these tags.\n"


def test_unknown_tag_ends_in_one_message_and_exit_code_2(grupo):
    code, out, err = grupo("methods", "list", "--tag", "lenght", "--json")
    assert (code, out) == (2, "")
    assert err.startswith("grupo: tag: 'lenght' is no tag. Did you mean 'length'? Allowed: ")


def test_method_is_no_command(grupo):
    code, _, err = grupo("method", "check", "grpo")
    assert code == 2
    assert err.startswith("grupo: 'method' is no command. Did you mean 'methods'?")
    err = grupo("env")[2]
    assert err.startswith("grupo: 'env' is no command. Write grupo doctor --environment. Allowed:")


@pytest.mark.slow
@pytest.mark.usefixtures("short_smoke_training")
def test_methods_check_tests_the_properties_of_a_file_s_method(grupo):
    code, out, _ = grupo("methods", "check", "method.py:half")
    assert code == 0
    assert out.splitlines()[-1] == "21 properties hold, 0 failed"
    assert "angle to the gradient of the expected reward: 0.0 degrees between tasks, " in out
    code, out, _ = grupo("methods", "check", "method.py:BROKEN")
    assert code == 1
    assert "FAILED  group_numbering_does_not_matter: " in out
    assert out.splitlines()[-1] == "19 properties hold, 2 failed"


def test_check_verifies_every_file_of_a_run(grupo, home):
    code, out, err = grupo("check", "run")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(line.startswith("OK      ") for line in lines[:-1])
    assert "OK      rollouts.jsonl  16 lines verified" in lines
    assert lines[-1] == "`grupo resume run` continues from step-00000002."


def test_check_names_damaged_files_and_ends_with_exit_code_4(grupo):
    code, out, err = grupo("check", "damaged", "--json")
    assert (code, err) == (4, "")
    result = json.loads(out)
    assert (result["intact"], result["resume_from"]) == (False, "")
    damaged = [file for file in result["files"] if file["problem"]]
    assert damaged[0] == {
        "file": "checkpoints/step-00000002/weights.safetensors",
        "problem": "step-00000002/weights.safetensors: its bytes are not those that were written",
        "note": "",
    }
    text = grupo("check", "damaged")[1]
    assert "damaged checkpoints/step-00000002/weights.safetensors  step-" in text
