"""Rewards at an address, such as rewards.py:score: what is loaded, stored, printed and refused."""

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm
from grupo.rewards import VerlReward, load_reward
from grupo.util.errors import ConfigError

TASK = Task("k", "2 + 2 =", "4", "sums", {"solution": "4"})
ROLLOUTS = [Rollout((("2 + 2 =", Response((1,), (0.0,), text=text)),)) for text in ("4", "five")]


def test_a_term_keeps_the_address_of_its_reward_and_prints_it(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "def score(solution_str, ground_truth):\n    return solution_str == ground_truth\n"
    )
    term = RewardTerm("mine", f"{file}:score")
    assert isinstance(term.reward, VerlReward)
    assert term.reward(TASK, ROLLOUTS) == [True, False]
    assert term == RewardTerm("mine", f"{file}:score")
    assert repr(term).startswith(f"RewardTerm(name='mine', fn='{file}:score', ")
    assert from_data(to_data(term)) == term
    assert load_reward(f"{file}:score") == term.reward


def test_an_address_may_name_an_object_that_has_none_of_its_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from functools import partial\nfrom grupo.rewards import ExactMatch\n\n"
        "def score(task, rollout, value):\n    return value\n\n"
        "half = partial(score, value=0.5)\none = lambda task, rollout: 1.0\nexact = ExactMatch()\n"
    )
    terms = [RewardTerm(name, f"{file}:{name}") for name in ("half", "one", "exact")]
    assert [from_data(to_data(term)) for term in terms] == terms
    assert [term.reward(TASK, ROLLOUTS) for term in terms[1:]] == [[1.0, 1.0], [1.0, 0.0]]


def test_the_tasks_are_checked_by_the_reward_at_an_address(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(completions, missing):\n    return missing\n")
    message = r"the parameter 'missing' of score is no column of the task"
    with pytest.raises(ConfigError, match=message):
        RewardTerm("mine", f"{file}:score").validate_tasks([TASK])


def test_the_same_relative_path_names_another_file_in_another_folder(tmp_path, monkeypatch):
    rewards = []
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "own.py").write_text(f"def score(task, rollout):\n    return {number}\n")
        monkeypatch.chdir(folder)
        rewards.append(RewardTerm("own", "own.py:score").reward)
    assert [reward(Task("a", "?"), [Rollout()]) for reward in rewards] == [[0], [1]]


def test_an_address_without_a_reward_is_a_config_error():
    message = r"'no.such.module' does not import: ModuleNotFoundError.*Searched"
    with pytest.raises(ConfigError, match=message):
        RewardTerm("own", "no.such.module:score")
    with pytest.raises(ConfigError, match=r"no signature of a reward"):
        RewardTerm("own", "os.path:join")
    with pytest.raises(ConfigError, match=r"'score' is not an address. Allowed: module:name"):
        RewardTerm("own", "score")
