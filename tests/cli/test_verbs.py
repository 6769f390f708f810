"""The commands from a user's side: their output, their files, their imports."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from grupo.cli.main import COMMAND_NAMES
from grupo.cli.recipe_help import field_help, field_options
from grupo.config.recipe_files import load_recipe_file
from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.toy.quickstart import RECIPE
from tests.helpers.fast_cases import fast_cases


def train_and_load_summary(grupo, run: Path, *arguments: str) -> dict:
    code, _, err = grupo("recipe.py", "--run", str(run), *arguments)
    assert (code, err) == (0, "")
    return json.loads((run / "summary.json").read_text())


def dry_run(grupo, folder: Path, *arguments: str) -> dict[str, str]:
    """The fields of the recipe that is in the TOML which `--dry-run` prints."""
    code, out, err = grupo("recipe.py", "--dry-run", *arguments)
    assert code == 0
    estimates = [f"{name}, estimated" for name in ("memory", "time", "evaluation")]
    messages = ("No tasks are held out", "method: ", *estimates)
    assert all(line.startswith(messages) for line in err.splitlines()), err
    (folder / "shown.toml").write_text(out)
    recipe = load_recipe_file(folder / "shown.toml")
    return {name: to_code(value) for name, value in component_fields(recipe).items()}


def read_journal(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_default_command_is_train(grupo):
    for arguments in (["recipe.py", "--dry-run"], ["--dry-run", "--steps", "3"]):
        assert grupo(*arguments)[:2] == grupo("train", *arguments)[:2]


def test_a_dry_run_shows_the_format_of_tool_calls(grupo, home):
    lines = ("def add(a: int) -> int:", "    return a", "", "RECIPE = RECIPE.replace(")
    toolbox = "    env=MultiTurn(Toolbox((add,), format='pythonic'))\n)"
    imports = (
        "from recipe import RECIPE",
        "from grupo.envs import MultiTurn",
        "from grupo.envs.tools import Toolbox",
        "",
    )
    (home / "pythonic_tools.py").write_text("\n".join((*imports, *lines, toolbox)))
    code, out, err = grupo("pythonic_tools.py", "--dry-run")
    assert code == 0
    assert "tools: calls in the format 'pythonic', described by the prompt" in err
    assert 'described_by = "prompt"' in out


def test_dry_run_prints_recipe_and_step_and_trains_nothing(grupo, home):
    before = sorted(home.iterdir())
    code, out, err = grupo("recipe.py", "--dry-run", "--method.updates", "Updates(2, 2)")
    assert code == 0
    assert [line.partition(":")[0] for line in err.splitlines()] == [
        "memory, estimated",
        "time, estimated",
        "evaluation, estimated",
    ]
    rollouts = "12 rollouts before training and 12 rollouts after it"
    assert f"{rollouts} (4 tasks, a greedy and 2 sampled answers to each)" in err
    assert "95% intervals of up to ±49 points" in err
    assert "\nmax_steps = 2\n" in out
    assert out.splitlines()[:2] == [
        "# 2 prompts x 4 rollouts = 8 rollouts per step; 4 updates per step; 2 steps = 8 updates",
        "# clock: SingleTurn.time_limit=10: what takes about that long may fail in one run and not"
        " in another",
    ]
    assert sorted(home.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "endless"], "stop_strings: empty, and 'endless' has no end token."),
        (["--policy.apply-chat-template", "True"], "the tokenizer has no chat template"),
        (["--policy.max-new-tokens", "64"], "max_new_tokens: 64. Allowed: below 64"),
        (["--policy.max-new-tokens", "63"], "prompts leave no room for an answer"),
        (["--eval-tasks", "12"], "eval_tasks: 12. Allowed: at most 11"),
    ],
)
def test_dry_run_refuses_what_a_run_refuses(grupo, tmp_path, arguments, message):
    run = tmp_path / "run"
    for extra in (["--dry-run"], ["--run", str(run)]):
        code, _, err = grupo("recipe.py", *arguments, *extra)
        assert code == 2
        assert message in err
    assert not run.exists()


def test_dry_run_says_what_a_run_says_of_its_tasks(grupo):
    options = ["--prompts-per-step", "9", "--overlong", "drop", "--tasks", "long.jsonl"]
    code, _, err = grupo("recipe.py", "--dry-run", *options)
    assert code == 0
    assert err.startswith("Dropped: 1 of 13 prompts")
    assert "prompts_per_step: 9 exceeds the 8 training tasks" in err


@pytest.mark.parametrize(
    ("arguments", "field", "shown"),
    [
        (["--steps", "7"], "max_steps", "7"),
        (["--steps=7"], "max_steps", "7"),
        (["--max-steps", "7"], "max_steps", "7"),
        (["--save-every", "5"], "save_every", "5"),
        (["--learning-rate", "3"], "learning_rate", "3.0"),
        (["--learning-rate", "Linear(1, 0)"], "learning_rate", "Linear(start=1.0, end=0.0)"),
        (["--max-grad-norm", "1e999"], "max_grad_norm", "inf"),
        (["--old-logp-tolerance", "0"], "old_logp_tolerance", "0.0"),
        (["--max-staleness", "1"], "stale_correction", "TruncatedIS(cap=2.0)"),
        (
            ["--max-staleness", "1", "--stale-correction.cap", "3"],
            "stale_correction",
            "TruncatedIS(cap=3.0)",
        ),
        (
            ["--max-staleness", "1", "--stale-correction", "IntervalMask(0.5, 2)"],
            "stale_correction",
            "IntervalMask(low=0.5, high=2.0)",
        ),
        (["--max-staleness", "1", "--stale-correction", "None"], "stale_correction", "None"),
        (["--policy.allow-pickle", "True"], "policy", "allow_pickle=True"),
        (["--eval-tasks", "3"], "eval_tasks", "3"),
        (["--eval-tasks", "0"], "eval_tasks", "0"),
        (
            ["--evaluation.success", "SuccessCriterion('digits', 0.5)"],
            "evaluation",
            "reward_term='digits', min_reward",
        ),
        (["--policy.max_new_tokens", "5"], "policy", "max_new_tokens=5"),
        (["--policy.stop-strings", "('a', 'b')"], "policy", "stop_strings=('a', 'b')"),
        (["--policy.lora", "Lora(8)"], "policy", "lora=Lora(rank=8, alpha=32.0,"),
        (["--policy.sampling.top_k", "3"], "policy", "top_k=3"),
        (["--model", "./model"], "policy", "model='./model'"),
        (["--method", "grpo"], "method", "0.04 * KL(other_policy='ref')"),
        (["--method", "grpo(kl_coef=0.5)"], "method", "0.5 * KL(other_policy='ref')"),
        (["--method", "method.py:half"], "method", "advantage=chain(Center(), "),
        (
            ["--method", "grpo", "--method.sampler.group-size", "3"],
            "method",
            "GroupSampler(group_size=3)",
        ),
        (
            ["--method.loss.clip-low", "Linear(0.1, 0.2)"],
            "method",
            "Clip(clip_low=Linear(start=0.1",
        ),
        (
            ["--reward", "rewards.py:words"],
            "env",
            "name='words', fn='rewards.py:words'",
        ),
        (
            ["--reward", "rewards.py:words"],
            "evaluation",
            "SuccessCriterion(reward_term='', min_reward=1.0)",
        ),
    ],
)
def test_options_and_fields_change_the_recipe(grupo, tmp_path, arguments, field, shown):
    assert shown in dry_run(grupo, tmp_path, *arguments)[field]


def test_run_writes_journals_and_summary_to_its_folder(grupo, tmp_path):
    summary = train_and_load_summary(grupo, tmp_path / "run", "--steps", "3")
    assert summary["steps"] == 3
    assert [record["step"] for record in read_journal(tmp_path / "run" / "metrics.jsonl")] == [
        1,
        2,
        3,
    ]
    assert (
        len(read_journal(tmp_path / "run" / "rollouts.jsonl")) == 3 * 2 * 4
    )  # steps, prompts, group size


def test_reward_terms_have_their_names(grupo, tmp_path):
    arguments = ["--reward", "rewards.py:digits", "--reward", "spaced=rewards.py:words"]
    train_and_load_summary(grupo, tmp_path / "run", *arguments)
    terms = [record["reward_terms"] for record in read_journal(tmp_path / "run" / "rollouts.jsonl")]
    assert {tuple(names) for names in terms} == {("digits", "spaced")}


def test_run_without_held_out_tasks_prints_so(grupo, tmp_path):
    code, out, _ = grupo("recipe.py", "--eval-tasks", "0", "--run", str(tmp_path / "run"))
    assert code == 0
    assert "No tasks are held out: nothing is evaluated." in out


def test_tensorboard_writes_events_into_the_run(grupo, tmp_path):
    train_and_load_summary(grupo, tmp_path / "run", "--tensorboard")
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def test_run_stopped_by_ctrl_c_prints_resume_hint_and_resumes(grupo, tmp_path):
    run = tmp_path / "my run"
    arguments = ["--reward", "rewards.py:interrupt", "--eval-tasks", "0"]
    code, _, err = grupo("recipe.py", *arguments, "--run", str(run))
    assert code == 130
    assert err.splitlines() == [f"`grupo resume '{run}'` continues with the first step."]
    assert not (run / "summary.json").exists()
    assert grupo("resume", str(run))[0] == 0
    assert [record["step"] for record in read_journal(run / "metrics.jsonl")] == [1, 2]


def test_resume_of_a_finished_run_changes_nothing(grupo, home):
    before = (home / "run" / "metrics.jsonl").read_bytes()
    assert grupo("resume", "run", "recipe.py", "--steps", "2")[0] == 0
    assert (home / "run" / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_every_command_has_help(grupo, command):
    code, out, _ = grupo(command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: grupo {command}")
    assert grupo(command, "-h")[1] == out


def test_train_help_lists_every_field_with_its_meaning_and_three_examples(grupo):
    code, out, _ = grupo("train", "--help")
    assert code == 0
    options = re.findall(r"^  (--[a-z-]+)", out, re.MULTILINE)
    assert {f"--{name.replace('_', '-')}" for name in component_fields(RECIPE)} <= {*options}
    assert all(field_help(Recipe).values())
    assert re.search(r"--max-steps, --steps +Rollout steps", out)
    assert out.count("$ grupo train ") == 3


def test_train_help_lists_the_fields_of_every_nested_component(grupo):
    _, out, _ = grupo("train", "--help")
    options = set(re.findall(r"^  (--[a-z0-9.-]+)", out, re.MULTILINE))
    fields = {
        option for option in field_options() if not option.startswith(("--tasks.", "--eval-"))
    }
    assert {"--policy.sampling.top-p", "--method.sampler.group-size"} <= fields <= options | {
        "--tasks", "--max-steps"
    }  # fmt: skip


def test_version_is_printed(grupo):
    assert grupo("--version") == (0, f"grupo {metadata.version('grupo')}\n", "")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("grupo train --policy.sa", ["--policy.sampling", "--policy.sampling.temperature"]),
        ("grupo compare --max-g", ["--max-grad-norm"]),
        ("grupo train --tens", ["--tensorboard"]),
        ("grupo mig", ["migrate"]),
    ],
)
def test_shell_completes_commands_options_and_fields(grupo, monkeypatch, words, names):
    monkeypatch.setenv("_GRUPO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, out, _ = grupo()
    assert code == 0
    assert set(names) <= set(out.split())


def test_python_m_grupo_runs_the_command_line(grupo):
    command = [sys.executable, "-m", "grupo", "trian"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == grupo("trian")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    fast_cases(
        1,
        [
            (["--help"], {"torch", "transformers"}),
            (["methods"], {"transformers", "peft", "datasets"}),
        ],
    ),
)
def test_light_commands_import_no_heavy_packages(arguments, unwanted):
    command = [sys.executable, "-X", "importtime", "-m", "grupo", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "grupo.cli.main" in imported
    assert imported & unwanted == set()
