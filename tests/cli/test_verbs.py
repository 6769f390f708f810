"""The verbs as a user meets them: what they print, what they write, what they import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grupo.cli.main import COMMAND_NAMES


def trained(grupo, run: Path, *words: str) -> dict:
    """The summary of a run."""
    code, _, err = grupo("recipe.py", "--run", str(run), *words)
    assert (code, err) == (0, "")
    return json.loads((run / "summary.json").read_text())


def printed(grupo, *words: str) -> dict[str, str]:
    """The fields that `--print` shows."""
    code, out, err = grupo("recipe.py", "--show-config", *words)
    assert (code, err) == (0, "")
    return dict(line.split(" = ", 1) for line in out.splitlines() if " = " in line)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_a_verb_it_trains(grupo):
    assert grupo("recipe.py", "--show-config") == grupo("train", "recipe.py", "--show-config")
    assert grupo("--show-config", "--steps", "3") == grupo("train", "--show-config", "--steps", "3")


def test_print_shows_the_recipe_and_what_a_step_does_and_trains_nothing(grupo, home):
    before = sorted(home.iterdir())
    code, out, _ = grupo("recipe.py", "--show-config", "--method.plan", "Updates(2, 2)")
    assert code == 0
    assert "\nsteps = 2\n" in out
    assert out.splitlines()[-1] == (
        "2 prompts x 4 rollouts = 8 rollouts a step; 4 updates a step; 2 steps = 8 updates"
    )
    assert sorted(home.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "field", "shown"),
    [
        (["--steps", "7"], "steps", "7"),
        (["--steps=7"], "steps", "7"),
        (["--save-every", "5"], "save_every", "5"),
        (["--learning-rate", "3"], "lr", "3.0"),
        (["--learning-rate", "Linear(1, 0)"], "lr", "Linear(start=1.0, end=0.0)"),
        (["--max-grad-norm", "1e999"], "max_norm", "inf"),
        (["--old-logp-tolerance", "0"], "tolerance", "0.0"),
        (["--policy.chat", "True"], "policy", "chat=True"),
        (["--eval-tasks", "3"], "held_out", "3"),
        (["--eval-tasks", "0"], "held_out", "0"),
        (
            ["--evaluation.solved", "SuccessCriterion('digits', 0.5)"],
            "evaluation",
            "part='digits', at_least",
        ),
        (["--policy.max_new_tokens", "5"], "policy", "limit=5"),
        (["--policy.stop", "('a', 'b')"], "policy", "stop=('a', 'b')"),
        (["--policy.lora", "Lora(8)"], "policy", "lora=Lora(rank=8, alpha=32.0,"),
        (["--policy.sampling.top_k", "3"], "policy", "top_k=3"),
        (["--model", "elsewhere"], "policy", "model='elsewhere'"),
        (["--method", "grpo"], "method", "0.04 * KL(other_policy='ref')"),
        (["--method", "grpo(kl_coef=0.5)"], "method", "0.5 * KL(other_policy='ref')"),
        (["--method", "method.py:half"], "method", "advantage=chain(Center(), "),
        (["--method", "grpo", "--method.sample.n", "3"], "method", "GroupSampler(group_size=3)"),
        (["--method.loss.low", "Linear(0.1, 0.2)"], "method", "Clip(clip_low=Linear(start=0.1"),
        (
            ["--reward", "rewards.py:words"],
            "env",
            "name='words', reward=Python(import_path='rewards.py:",
        ),
        (
            ["--reward", "rewards.py:words"],
            "evaluation",
            "SuccessCriterion(reward_term='', min_reward=1.0)",
        ),
    ],
)
def test_options_and_fields_change_the_recipe(grupo, words, field, shown):
    assert shown in printed(grupo, *words)[field]


def test_a_run_is_written_where_it_is_told_to_and_says_what_it_came_to(grupo, tmp_path):
    summary = trained(grupo, tmp_path / "run", "--steps", "3")
    assert summary["steps"] == 3
    assert [line["step"] for line in lines(tmp_path / "run" / "metrics.jsonl")] == [0, 1, 2]
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 3 * 2 * 4  # steps, prompts, n


def test_rewards_keep_their_names(grupo, tmp_path):
    words = ["--reward", "rewards.py:digits", "--reward", "spaced=rewards.py:words"]
    trained(grupo, tmp_path / "run", *words)
    parts = [line["parts"] for line in lines(tmp_path / "run" / "rollouts.jsonl")]
    assert {tuple(part) for part in parts} == {("digits", "spaced")}


def test_a_run_without_held_out_tasks_says_so(grupo, tmp_path):
    code, out, _ = grupo("recipe.py", "--eval-tasks", "0", "--run", str(tmp_path / "run"))
    assert code == 0
    assert "No tasks were held out: nothing was measured." in out


def test_tensorboard_writes_events_into_the_run(grupo, tmp_path):
    trained(grupo, tmp_path / "run", "--tensorboard")
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def test_a_run_stopped_by_control_c_says_how_it_goes_on_and_does(grupo, tmp_path):
    run = tmp_path / "run"
    words = ["--reward", "rewards.py:interrupt", "--eval-tasks", "0"]
    code, _, err = grupo("recipe.py", *words, "--run", str(run))
    assert code == 130
    assert err.splitlines() == [f"`grupo resume {run}` goes on from what was saved."]
    assert not (run / "summary.json").exists()
    assert grupo("resume", str(run))[0] == 0
    assert [line["step"] for line in lines(run / "metrics.jsonl")] == [0, 1]


def test_resume_of_a_run_that_has_ended_changes_nothing(grupo, home):
    before = (home / "run" / "metrics.jsonl").read_bytes()
    assert grupo("resume", "run", "recipe.py", "--steps", "2")[0] == 0
    assert (home / "run" / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("verb", COMMAND_NAMES)
def test_every_verb_has_help(grupo, verb):
    code, out, _ = grupo(verb, "--help")
    assert code == 0
    assert out.startswith(f"Usage: grupo {verb}")
    assert grupo(verb, "-h")[1] == out


def test_python_m_grupo_is_grupo(grupo):
    command = [sys.executable, "-m", "grupo", "trian"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == grupo("trian")


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [(["--help"], {"torch", "transformers"}), (["methods"], {"transformers", "peft", "datasets"})],
)
def test_little_is_imported_for_little(words, unwanted):
    command = [sys.executable, "-X", "importtime", "-m", "grupo", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "grupo.cli.main" in imported
    assert imported & unwanted == set()
