"""What fails in a run, or cannot work in it, is said and is not turned into a number."""

import json

import pytest

REWARDS = """
def raises(completions, **columns):
    return [1 / 0 for text in completions]


def column(completions, solution, **columns):
    return [0.0 for text in completions]
"""
TOOLS = """
from grupo.envs import MultiTurn
from grupo.envs.tools.tool_env import Toolbox
from recipe import RECIPE


def calculator(expression: str) -> str:
    '''Evaluate an arithmetic expression and return its value.'''
    return expression


RECIPE = RECIPE.replace(env=MultiTurn(Toolbox((calculator,))))
"""


@pytest.fixture
def failing(grupo, home):
    """The command line in a folder with reward functions that fail."""
    (home / "failing.py").write_text(REWARDS)
    return grupo


def test_a_step_without_any_scored_rollout_ends_the_run_with_the_place_of_the_error(
    failing, tmp_path
):
    arguments = ("--reward", "failing.py:raises", "--run", str(tmp_path / "run"))
    code, out, err = failing("recipe.py", *arguments)
    assert code == 1
    assert "step 1: none of 8 rollouts could be scored" in err
    assert out.count("fails on a made-up answer: it raised ZeroDivisionError") == 1
    assert err.count("raised ZeroDivisionError: division by zero (failing.py:3)") == 1
    assert "held-out before: greedy not scored, sampled not scored" in out


def test_on_unscored_continue_trains_to_the_end_and_names_the_error_once(failing, tmp_path):
    run = tmp_path / "run"
    arguments = ("--reward", "failing.py:raises", "--on-unscored", "continue", "--run", str(run))
    code, out, _ = failing("recipe.py", *arguments)
    assert code == 0
    assert out.count("A rollout could not be scored: task") == 1
    assert out.count("raised ZeroDivisionError: division by zero (failing.py:3)") == 2
    assert out.count("not scored") >= 4  # greedy and sampled, before and after
    held_out = json.loads((run / "summary.json").read_text())["held_out"]
    assert (held_out["after"]["intervals"], held_out["after"]["failed"]) == ({}, 12)
    assert "sampled" not in held_out["after"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--reward", "failing.py:column"],
            "reward: the parameter 'solution' of column is no column of the task",
        ),
        (
            ["--policy.lora", "Lora(targets=('q_proj', 'v_prj'))"],
            "targets: no layer of the model is named 'v_prj'. Did you mean 'v_proj'?",
        ),
        (
            ["--eval-tasks", "0", "--evaluation.every", "1"],
            "evaluation.every: 1. Allowed without held-out tasks: 0.",
        ),
        (
            ["--eval-tasks", "0", "--early-stopping", "EarlyStopping(0.9)"],
            "early_stopping.min_solve_rate: 0.9. Allowed without held-out tasks: above 1.",
        ),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_before_the_run(failing, tmp_path, arguments, message):
    run = tmp_path / "run"
    code, _, err = failing("recipe.py", "--run", str(run), *arguments)
    assert (code, run.exists()) == (2, False)
    assert message in err


def test_tools_whose_description_exceeds_the_context_are_refused(grupo, home, tmp_path):
    (home / "tools.py").write_text(TOOLS)
    code, _, err = grupo("tools.py", "--run", str(tmp_path / "run"))
    assert code == 2
    assert "env: its first observation, with descriptions of tools" in err


def test_more_prompts_than_tasks_are_said(grupo, tmp_path):
    arguments = ("--prompts-per-step", "9", "--steps", "1", "--run", str(tmp_path / "run"))
    code, out, _ = grupo("recipe.py", *arguments)
    assert code == 0
    assert "prompts_per_step: 9 exceeds the 8 training tasks" in out
