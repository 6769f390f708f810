"""Verifiers of reasoning-gym and mathematical equality, in safe processes."""

import subprocess
import sys

import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout, Task
from grupo.rewards import InsideTag, MathEqual, ReasoningGymVerifier, last_boxed
from grupo.rewards.math_equal import MathError, math_equal
from grupo.tasks import ReasoningGym


def rollout(text):
    return Rollout((("?", Action((), (), text=text)),))


@pytest.mark.parametrize("family", ["chain_sum", "gcd", "countdown", "spiral_matrix", "n_queens"])
def test_the_oracle_answer_scores_one_if_it_can_be_extracted(family):
    (task,) = ReasoningGym(family, size=1).load()
    oracle = task.columns["entry"]["answer"]
    assert ReasoningGymVerifier().score(task, rollout(oracle)) == 1.0
    inside_tag = ReasoningGymVerifier(InsideTag("answer"))
    assert inside_tag.score(task, rollout(f"<answer>{oracle}</answer>")) == 1.0
    assert inside_tag.score(task, rollout(oracle)) == 0.0


@pytest.mark.parametrize(
    ("family", "template"),
    [
        ("countdown", "__import__('pathlib').Path({!r}).touch()"),
        ("puzzle24", "__import__('pathlib').Path({!r}).touch()"),
        ("spiral_matrix", "[__import__('pathlib').Path({!r}).touch()]"),
        ("string_insertion", "[__import__('pathlib').Path({!r}).touch()]"),
        ("binary_matrix", "[__import__('pathlib').Path({!r}).touch()]"),
        ("n_queens", "[__import__('pathlib').Path({!r}).touch()]"),
    ],
)
def test_the_policys_text_is_not_run(tmp_path, family, template):
    (task,) = ReasoningGym(family, size=1).load()
    attack = template.format(str(tmp_path / "canary"))
    verify = __import__("reasoning_gym").get_score_answer_fn(family)
    verify(attack, task.columns["entry"])
    assert (tmp_path / "canary").exists(), "reasoning-gym's own verifier does run it"
    (tmp_path / "canary").unlink()
    assert ReasoningGymVerifier().score(task, rollout(attack)) == 0.0
    assert not (tmp_path / "canary").exists()


def test_endless_powers_do_not_reach_a_verifier():
    (task,) = ReasoningGym("countdown", size=1).load()
    assert ReasoningGymVerifier().score(task, rollout("9**9**9**9**9")) == 0.0


def test_families_whose_verifier_runs_expressions_are_config_errors():
    (task,) = ReasoningGym("polynomial_multiplication", size=1).load()
    with pytest.raises(ConfigError, match=r"Use MathEqual"):
        ReasoningGymVerifier().score(task, rollout("x"))
    assert MathEqual().score(task, rollout(task.reference_answer)) == 1.0
    assert MathEqual().score(task, rollout(f"${task.reference_answer}$".replace("**", "^"))) == 1.0
    assert MathEqual().score(task, rollout(task.reference_answer + " + 1")) == 0.0


@pytest.mark.parametrize(
    ("reference_answer", "text", "value"),
    [
        ("1/2", r"so it is $\frac{1}{2}$", 1.0),
        (r"\frac{1}{2}", r"\boxed{0.5}", 1.0),
        (r"$\frac{1}{2}$", r"\boxed{0.6}", 0.0),
        ("x + 1", "$1 + x$", 1.0),
        ("72", "72", 1.0),
        ("1,000", "1000 apples", 1.0),
        ("x", "x", 1.0),
        ("5", "4 or 5 or 6", 0.0),
        (72, "seventy-two", 0.0),
    ],
)
def test_equal_expressions_score_one(reference_answer, text, value):
    assert MathEqual().score(Task("k", "?", reference_answer), rollout(text)) == value


def test_a_missing_answer_scores_zero():
    assert MathEqual(last_boxed).score(Task("k", "?", "4"), rollout("$4$")) == 0.0


def test_a_hanging_comparison_is_killed_and_the_next_one_works():
    endless = "$9^{9^{9^{9}}}$"
    with pytest.raises(MathError, match=r"killed after 0\.5 s"):
        MathEqual(time_limit=0.5).score(Task("k", "?", "2"), rollout(endless))
    assert math_equal("2", "$1 + 1$", 5.0)


def test_a_reference_answer_without_an_expression_is_an_error():
    with pytest.raises(MathError, match=r"is no expression"):
        math_equal("$$", "3", 5.0)
    with pytest.raises(ConfigError, match=r"time_limit"):
        MathEqual(time_limit=0.0)


def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('begins')\n"
        "from grupo.rewards.math_equal import math_equal\n"
        "print(math_equal('1/2', '$0.5$', 5.0))\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["begins", "True"]
