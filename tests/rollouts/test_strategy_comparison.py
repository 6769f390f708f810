"""Strategies at equal tokens: costs of an answer, curves of the baselines, paired differences."""

from math import comb

import pytest

from grupo.config.strategies import check_strategy, vote_extractor
from grupo.core.extract_answer import AfterMarker, final_answer, last_boxed, whole_text
from grupo.core.interfaces import single_response
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.report.strategies import comparison_lines, frontier
from grupo.rewards import ExactMatch, NumberWithin, RandomReward
from grupo.rewards.choices import ByHead, ByReward
from grupo.rollouts.samplers.pruning import QUALITY_HEAD
from grupo.rollouts.strategy_attempts import StrategyAttempts, attempt_tasks
from grupo.rollouts.strategy_comparison import compare_strategies
from grupo.rollouts.turns import BestOf, Revised, Vote
from grupo.rollouts.vote_curve import best_of_n_curve, vote_curve
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers import tiny_lm
from tests.helpers.scripted_actor import Once

TASKS = [Task(text, text) for text in ("Hello there", "What is it?", "Hello you")]


def attempts_with(*texts: str, logp=-1.0) -> StrategyAttempts:
    """Single attempts of 2 tokens at one task, which read 10 tokens each."""
    rows = tuple(
        (
            Rollout(
                (("Q", Response((1, 2), (logp * len(t), logp), text=t)),), reward=float(t == "b")
            ),
        )
        for t in texts
    )
    return StrategyAttempts(rows, {"": 2 * len(texts)}, {"": 10 * len(texts)}, {}, 1.0)


def is_b(rollout: Rollout) -> bool:
    return rollout.reward == 1


def test_the_vote_curve_begins_with_pass_at_1_and_ends_with_the_vote_of_all():
    curve = vote_curve(attempts_with("b", "b", "b", "a", "c"), is_b, whole_text)
    assert curve.accuracies[0, 0] == pytest.approx(3 / 5)
    # of three attempts two or three are "b", or one is and comes first
    two_or_more = (comb(3, 2) * 2 + 1) / comb(5, 3)
    one_first = 3 * comb(2, 2) / comb(5, 3) / 3
    assert curve.accuracies[2, 0] == pytest.approx(two_or_more + one_first, abs=0.05)
    assert curve.accuracies[4, 0] == 1


def test_attempts_without_an_answer_do_not_vote():
    curve = vote_curve(attempts_with("", "", "b"), is_b, whole_text)
    assert curve.accuracies[:, 0].tolist() == pytest.approx([1 / 3, 2 / 3, 1])


def test_the_likeliest_of_all_attempts_is_the_shortest():
    curve = best_of_n_curve(attempts_with("b", "aaa", "aa"), is_b)
    assert curve.accuracies[:, 0].tolist() == pytest.approx([1 / 3, 2 / 3, 1])


def test_attempts_share_the_prompt_and_are_mixed_between_two_numbers():
    curve = vote_curve(attempts_with("b", "b", "a"), is_b, whole_text)
    assert curve.tokens(3) == {"generated": 6, "read": 10}
    assert curve.num_attempts_costing(2 * 2.5 + 10) == 2.5
    assert curve.accuracies_at(2.5) == pytest.approx(
        (curve.accuracies[1] + curve.accuracies[2]) / 2
    )
    assert curve.accuracies_at(0.5) == curve.accuracies[0]
    assert curve.accuracies_at(9) == curve.accuracies[2]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("model"), max_position_embeddings=999)
    policy = CausalLM(str(folder), max_new_tokens=6).build()
    policy.attach_heads((QUALITY_HEAD,))
    return policy


def attempt(policy, strategy, rounds=2, tasks=TASKS):
    return attempt_tasks(policy, Once(), tasks, strategy, attempt_indices=range(rounds), key=1)


def test_a_prompt_is_read_once_for_all_attempts_at_an_answer(policy):
    single, vote = (attempt(policy, x) for x in (single_response, Vote(4)))
    # "Hello " is the beginning of two prompts, and each round reads it once
    num_read = sum(len(task.prompt) for task in TASKS) - len("Hello ")
    assert single.read_by_role == vote.read_by_role == {"": 2 * num_read}
    assert 3 * sum(single.generated_by_role.values()) < sum(vote.generated_by_role.values())


def test_generated_tokens_are_not_read_again_but_for_the_last_one(policy):
    strategy = Revised(1, "{task}{answer}")
    tasks = TASKS[:1]
    run = attempt(policy, strategy, 1, tasks)
    # the form begins with the prompt, whose tokens are cached, and goes on with the answer
    assert sum(run.read_by_role.values()) <= len(TASKS[0].prompt) + 6 + 1


def test_a_head_reads_the_last_token_of_every_attempt(policy):
    single = attempt(policy, single_response, 1)
    best = attempt(policy, BestOf(2, ByHead(QUALITY_HEAD.name)), 1)
    # the engine has keys and values of what it generated, but for the last token of an answer
    assert sum(best.read_by_role.values()) == sum(single.read_by_role.values()) + 2 * len(TASKS)


def test_rounds_are_repeatable_and_differ(policy):
    first, again = attempt(policy, Vote(2)), attempt(policy, Vote(2))
    texts = [[r.text for r in row] for row in first.rollouts]
    assert texts == [[r.text for r in row] for row in again.rollouts]
    assert texts[0] != texts[1]


ODD_LENGTH = Once(lambda text: float(len(text) % 2))


def compare(policy, strategies, attempts_per_task=2, env=ODD_LENGTH):
    return compare_strategies(
        policy,
        env,
        TASKS,
        strategies,
        attempts_per_task=attempts_per_task,
        success=is_b,
        extract=whole_text,
        key=1,
    )


def test_a_comparison_pairs_strategies_by_task(policy):
    comparison = compare(
        policy, {"single": single_response, "Vote(3)": Vote(3, whole_text), "Revised": Revised(2)}
    )
    single, vote, revised = comparison.strategies
    assert single.difference_to_first is None
    assert single.at_equal_tokens is None
    assert vote.difference_to_first.value == pytest.approx(
        vote.accuracy.value - single.accuracy.value
    )
    equal = revised.at_equal_tokens
    assert equal.difference.value == pytest.approx(revised.accuracy.value - equal.self_consistency)
    tokens = comparison.votes[0].tokens
    spent = tokens["read"] + equal.attempts * tokens["generated"]
    assert equal.is_clamped or spent == pytest.approx(revised.tokens_per_attempt, rel=0.2)
    data = comparison.to_data()
    assert [x["name"] for x in data["strategies"]] == ["single", "Vote(3)", "Revised"]
    assert data["strategies"][1]["usage"]["votes/all"] == 2 * len(TASKS)
    assert {"greedy", "Vote(1)", "BestOf(2)"} <= {x["name"] for x in data["baselines"]}
    text = "\n".join(comparison_lines(comparison))
    assert "Vote(3): of 6 votes" in text
    assert "Revised: " in text


def test_a_vote_costs_as_many_tokens_as_the_same_point_of_the_curve(policy):
    comparison = compare(policy, {"Vote(4)": Vote(4, whole_text)}, attempts_per_task=6)
    (vote,) = comparison.strategies
    assert vote.at_equal_tokens.attempts == pytest.approx(4, rel=0.25)


def broken_reward(task, rollout):
    raise ValueError("broken")


BROKEN_ENV = SingleTurn((RewardTerm("r", broken_reward),))


def test_failed_attempts_are_counted_and_not_solved(policy):
    run = attempt_tasks(policy, BROKEN_ENV, TASKS, single_response, attempt_indices=range(1), key=1)
    assert len(run.errors) == 3
    assert run.solved(is_b).sum() == 0


def test_failed_single_attempts_are_counted_once_if_strategies_share_them(policy):
    strategies = {"single": single_response, "again": single_response}
    comparison = compare(policy, strategies, attempts_per_task=2, env=BROKEN_ENV)
    # of each task, the greedy answer and two single attempts
    assert len(comparison.errors) == comparison.to_data()["failed"] == 3 * len(TASKS)
    assert [result.details["failed"] for result in comparison.strategies] == [2 * len(TASKS)] * 2


def test_failed_attempts_of_a_strategy_add_to_those_of_the_baselines(policy):
    comparison = compare(policy, {"Revised": Revised(1)}, attempts_per_task=1, env=BROKEN_ENV)
    num_single = int(comparison.votes[-1].name.removeprefix("Vote(").removesuffix(")"))
    # of each task, the greedy answer, the revised answer and the single attempts
    assert len(comparison.errors) == (2 + num_single) * len(TASKS)


def test_the_frontier_has_the_results_that_no_cheaper_one_reaches(policy):
    comparison = compare(policy, {"single": single_response, "Vote(2)": Vote(2)})
    results = (*comparison.strategies, *comparison.votes)
    kept = frontier(results)
    values = [result.accuracy.value for result in kept]
    assert values == sorted(set(values))
    assert max(result.accuracy.value for result in results) == values[-1]


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (BestOf(2, ByHead("score")), r"ByHead\(head='score'\), and the policy has no head"),
        (Revised(1, role="critic"), "needs a policy of the role 'critic'"),
        (BestOf(2, ByReward(NumberWithin())), "reference answer"),
    ],
)
def test_what_the_policy_lacks_is_named_before_the_run(strategy, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", strategy, RECIPE)


def test_the_yardstick_votes_as_the_strategy_or_the_reward_does():
    env = SingleTurn((RewardTerm("m", ExactMatch(extract=last_boxed)),))
    own = AfterMarker("#")
    assert vote_extractor([single_response, Vote(2, own)], env) == own
    assert vote_extractor([Vote(2)], env) is last_boxed
    without = SingleTurn((RewardTerm("random", RandomReward()),))
    assert vote_extractor([Vote(2)], without) is final_answer
