"""The component around reasoning-gym's verifiers: errors, limits, and tasks that it refuses."""

import asyncio

import pytest

from grupo.config.validate import check_component_tasks
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import AfterMarker, AnswerError, ReasoningGymVerifier
from grupo.rewards.reasoning_gym import GuardedVerifier
from grupo.rewards.reasoning_gym_guards import REFUSED_FAMILIES, Guard, matches
from grupo.tasks import ReasoningGym
from grupo.tasks.reasoning_gym import create_gym_dataset
from grupo.util.errors import ConfigError

ENTRY = {"answer": "4"}
BOXNET = ReasoningGym("boxnet", size=1).load()[0]


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


def parse_int(answer, entry):
    return float(int(answer) == int(entry["answer"]))


def broken(answer, entry):
    raise KeyError("metadata")


def test_an_answer_on_which_the_verifier_raises_earns_0_and_is_counted():
    with pytest.raises(TypeError):
        create_gym_dataset("boxnet", ()).score_answer("1", BOXNET.columns["entry"])
    env = SingleTurn((RewardTerm("correct", ReasoningGymVerifier()),))
    raising, wrong = asyncio.run(env.score(BOXNET, [rollout("1"), rollout("?")]))
    assert (raising.reward, raising.error) == (0.0, "")
    assert raising.reward_terms == {"correct": 0.0, "answer_error": 1.0}
    assert wrong.reward_terms == {"correct": 0.0}


def test_a_verifier_that_raises_on_the_reference_answer_fails_the_rollout():
    (task,) = ReasoningGym("complex_arithmetic", size=1).load()
    entry = {**task.columns["entry"], "metadata": {}}
    damaged = Task(task.key, task.prompt, task.reference_answer, task.source, {"entry": entry})
    env = SingleTurn((RewardTerm("correct", ReasoningGymVerifier()),))
    (result,) = asyncio.run(env.score(damaged, [rollout("1 + 2i")]))
    assert "KeyError: 'result'" in result.error
    (result,) = asyncio.run(env.score(task, [rollout("1 + 2i")]))
    assert result.error == ""


def test_the_reference_answer_decides_whose_fault_an_error_is():
    assert GuardedVerifier(parse_int)("4", ENTRY) == 1.0
    with pytest.raises(AnswerError, match="the verifier raised ValueError"):
        GuardedVerifier(parse_int)("four", ENTRY)
    with pytest.raises(KeyError, match="metadata"):
        GuardedVerifier(broken)("four", ENTRY)


@pytest.mark.parametrize("score", [float("nan"), -0.5, 1.5, float("inf")])
def test_a_score_outside_0_to_1_earns_nothing(score):
    def verify(answer, entry):
        return 1.0 if answer == entry["answer"] else score

    with pytest.raises(AnswerError, match="Allowed: 0 to 1"):
        GuardedVerifier(verify)("5", ENTRY)
    with pytest.raises(ValueError, match="Allowed: 0 to 1"):
        GuardedVerifier(lambda answer, entry: score)("4", ENTRY)


def test_a_sum_of_fractions_may_exceed_1_by_a_rounding_error():
    assert GuardedVerifier(lambda *_: 1 + 2**-52)("4", ENTRY) == 1.0


def test_answers_that_a_guard_rejects_do_not_reach_the_verifier():
    guarded = GuardedVerifier(broken, Guard("", matches("[0-9]*")))
    assert guarded("four", ENTRY) == 0.0
    with pytest.raises(KeyError):
        guarded("4", ENTRY)


@pytest.mark.parametrize(
    ("score", "reward"), [(1.0, 1.0), (0.9995, 0.9995), (0.9, 0.09), (0.0, 0.0)]
)
def test_partial_credit_is_reduced_but_not_that_of_a_rounding_error(score, reward):
    guarded = GuardedVerifier(lambda *_: score, Guard("", partial_credit=0.1))
    assert guarded("4", ENTRY) == pytest.approx(reward)


@pytest.mark.parametrize(("reference_answer", "limit"), [("4", 10_000), ("4" * 3000, 12_000)])
def test_answers_beyond_the_char_limit_earn_0(reference_answer, limit):
    guarded = GuardedVerifier(lambda *_: 1.0)
    assert guarded("5" * limit, {"answer": reference_answer}) == 1.0
    assert guarded("5" * (limit + 1), {"answer": reference_answer}) == 0.0


def refused_tasks(family):
    # composite cannot be made from settings
    return [Task("k", "?", "4", family, {"entry": ENTRY, "settings": ()})]


@pytest.mark.parametrize("family", REFUSED_FAMILIES)
def test_refused_families_are_a_config_error_before_the_run(family):
    env = SingleTurn((RewardTerm("correct", ReasoningGymVerifier(AfterMarker("####"))),))
    with pytest.raises(ConfigError, match=f"ReasoningGymVerifier refuses {family}: "):
        check_component_tasks(env, refused_tasks(family))
    check_component_tasks(env, ReasoningGym("gcd", size=3).load())


def test_tasks_of_other_sources_are_a_config_error_before_the_run():
    with pytest.raises(ConfigError, match=r"of 'sums' has no column 'entry'"):
        ReasoningGymVerifier().validate_tasks([Task("k", "?", "4", "sums")])
