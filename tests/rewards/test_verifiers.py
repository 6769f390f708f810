"""Verifiers of reasoning-gym."""

import pytest

from grupo.core.types import Response, Rollout
from grupo.rewards import InsideTag, MathEqual, ReasoningGymVerifier
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


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
