"""Graphs of thoughts: a scripted policy sorts, and illegal operations change nothing."""

import asyncio

import pytest

from grupo.config.validate import check_component_tasks
from grupo.core.types import Task
from grupo.envs import MultiplayerEnv
from grupo.envs.game_session import VersusOpponent
from grupo.envs.thoughts import Sorting, ThoughtGraph, alphabetical
from grupo.envs.thoughts.sorting import BRACKETS, shown
from grupo.rollouts.samplers import SelfPlay
from grupo.util.errors import ConfigError
from tests.helpers.toy_games import GameActor, play_games

NUMBERS = ["8", "31", "5", "10", "2", "2", "90", "7", "4", "66", "1", "0", "12", "3", "50", "9"]
WORDS = ["pear", "Fig", "apple", "date", "Cherry", "banana"]
SCHEDULE = ["split 1", "solve 2", "solve 3", "solve 4", "solve 5"]
SCHEDULE += ["merge 6 7", "merge 8 9", "merge 10 11"]


def sort_task(items=NUMBERS):
    return Task("t", "Sort.", columns={"items": items})


def right_solver(prompt, rng):
    """A solver without errors: all items of the lists of the prompt, sorted."""
    lists = BRACKETS.findall(prompt)[:1] if prompt.startswith("The list") else None
    items = [x for found in lists or BRACKETS.findall(prompt) for x in found.split(", ") if x]
    is_number = all(item.isdigit() for item in items)
    return shown(sorted(items, key=int if is_number else str.casefold))


def session(*texts, solver=right_solver, items=NUMBERS, **fields):
    """The results of the policy's texts, in a game whose opponent is the solver."""
    game = VersusOpponent(ThoughtGraph(**fields), solver)()
    return [game.reset(sort_task(items)), *map(game.step, texts)]


def lines(result):
    return result.observation.splitlines()


def test_a_scripted_policy_sorts_sixteen_numbers():
    results = session(*SCHEDULE, max_calls=7)
    assert [result.done for result in results] == [False] * 8 + [True]
    assert [result.reward for result in results] == [0.0] * 8 + [1.0]
    assert sum(result.counts.get("solver_calls", 0) for result in results) == 7
    assert lines(results[-1])[-2] == "12 = merge 10 11: thought of 16 items, 0 errors"


def test_a_scripted_policy_sorts_words():
    texts = ("split 1", "Solve 2.", "solve 3", "merge 4, 5")
    results = session(*texts, items=WORDS, problem=Sorting(alphabetical), parts=2)
    assert (results[-1].done, results[-1].reward) == (True, 1.0)


def test_the_policy_reads_every_node_and_the_calls_that_are_left():
    result = session("split 1", "solve 2", items=["2", "1", "3"], parts=2, max_calls=5)[-1]
    assert lines(result)[:-1] == [
        "Sort.",
        "1: problem of 3 items",
        "2 = split 1: problem of 1 items",
        "3 = split 1: problem of 2 items",
        "4 = solve 2: thought of 1 items, 0 errors",
    ]
    assert lines(result)[-1].startswith("4 solver calls are left.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("merge 6", "a merge needs two thoughts or more"),
        ("merge 2 6", "node 2 is a problem, and a thought is needed: solve it first"),
        ("merge 6 7", "these thoughts have items in common"),
        ("merge 6 6", "these thoughts have items in common"),
        ("refine 3", "node 3 is a problem, and a thought is needed: solve it first"),
        ("solve 6", "node 6 is a thought, and a problem is needed"),
        ("split 6", "node 6 is a thought, and a problem is needed"),
        ("split 2", "node 2 has one item and cannot be split"),
        ("split 1", "node 1 is split already"),
        ("solve 9", "there is no node 9, only 1, 2, 3, 4, 5, 6, 7"),
        ("drop 1", "node 1 is the whole problem and cannot be dropped"),
        ("solve 2 3", "solve takes one node"),
        ("sort it", "the operations are split N, solve N, refine N, merge N N ..., drop N"),
        ("solve", "the operations are split N, solve N, refine N, merge N N ..., drop N"),
        ("", "the operations are split N, solve N, refine N, merge N N ..., drop N"),
    ],
)
def test_an_illegal_operation_is_answered_by_the_reason_and_changes_nothing(text, reason):
    *_, before, refused = session("split 1", "solve 2", "solve 2", text, items=["3", "1", "2", "0"])
    assert lines(refused)[0] == f"{text!r} is not possible: {reason}."
    assert lines(refused)[1:] == lines(before)
    assert refused.counts == {"illegal": 1.0}
    assert not refused.done


def test_a_full_graph_has_room_again_after_a_drop():
    items = ["3", "1", "2"]
    texts = ("split 1", "solve 2", "solve 3", "drop 5", "solve 3", "split 1")
    results = session(*texts, items=items, parts=2, max_nodes=4)
    assert [bool(result.counts.get("illegal")) for result in results[1:]] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    assert lines(results[3])[0] == (
        "'solve 3' is not possible: the graph has 4 of 4 nodes and no room for 1 more: drop some"
        " first."
    )
    dropped = session("split 1", "solve 2", "drop 4", "solve 3", items=items, parts=2, max_nodes=4)
    assert lines(dropped[-1])[-2] == "5 = solve 3: thought of 2 items, 0 errors"


def test_a_refinement_is_kept_unless_it_has_more_errors():
    replies = iter(("[2, 1, 3]", "[3, 2, 1]", "[1, 2, 3]"))  # 1, 2 and 0 errors
    texts = ("solve 1", "refine 2", "refine 2")
    results = session(*texts, solver=lambda prompt, rng: next(replies), items=["3", "2", "1"])
    assert [lines(result)[2] for result in results[1:]] == [
        "2 = solve 1: thought of 3 items, 1 errors",
        "2 = solve 1: thought of 3 items, 1 errors, 1 refinements",
        "2 = solve 1: thought of 3 items, 0 errors, 2 refinements",
    ]
    assert results[-1].reward == 1.0


def test_the_session_ends_without_reward_when_the_calls_are_used_up():
    results = session("solve 1", "refine 2", solver=lambda p, r: "no idea", max_calls=2)
    assert (results[1].done, results[2].done, results[2].reward) == (False, True, 0.0)


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        ("[1, 2, 3, 3]", 0),
        ("[1, 3, 2, 3]", 1),  # one pair of neighbours
        ("[1, 2, 3]", 1),  # one 3 is missing
        ("[1, 2, 4, 3]", 3),  # one pair, a 3 is missing, a 4 is added
        ("", 4),
    ],
)
def test_errors_count_neighbours_in_the_wrong_order_and_missing_or_added_items(answer, errors):
    problem = Sorting()
    assert problem.errors(["3", "1", "3", "2"], problem.read(answer)) == errors


def test_the_solver_may_be_a_role_that_is_not_trained():
    texts = (
        ["split 1", "solve 2", "jump", "solve 3", "merge 4 5"],
        ["[1, 3]", "[0, 2]", "[0, 1, 2, 3]"],
    )
    roles = {"roles": ("", "solver"), "frozen": ("solver",)}
    env = MultiplayerEnv(ThoughtGraph(parts=2))
    actor = GameActor(texts)
    sampler = SelfPlay(1, **roles)
    (policy,) = asyncio.run(sampler(sort_task(["3", "1", "2", "0"]), env.open(), actor)).rollouts
    assert (policy.role, policy.reward, sampler.group_size) == ("", 1.0, 1)
    assert (policy.reward_terms["illegal"], policy.reward_terms["solver_calls"]) == (1.0, 3.0)
    prompts = [prompt.splitlines()[0] for prompt in actor.observations[0][1]]
    assert prompts == [
        "Sort this list in ascending order: [3, 1]",
        "Sort this list in ascending order: [2, 0]",
        "Merge these sorted lists into one sorted list: [1, 3] [0, 2]",
    ]
    assert sampler.provides.roles == {"solver"}


def test_both_seats_are_rewarded_and_trained_on_by_default():
    game = (["solve 1"], ["[1, 2]"])
    policy, solver = play_games(game, env_factory=ThoughtGraph(), task=sort_task(["2", "1"]))[0]
    assert (policy.reward, solver.reward) == (1.0, 1.0)


@pytest.mark.parametrize("items", [None, [], "3 1 2"])
def test_a_task_without_items_is_refused_before_the_run(items):
    env = MultiplayerEnv(ThoughtGraph())
    check_component_tasks(env, [sort_task()])
    with pytest.raises(ConfigError, match=r"Allowed: a column `items` with a list of at least one"):
        check_component_tasks(env, [sort_task(), sort_task(items)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ThoughtGraph(parts=1), "ThoughtGraph.parts: 1. Allowed: 2 or more."),
        (lambda: ThoughtGraph(max_nodes=1), "ThoughtGraph.max_nodes: 1. Allowed: 2 or more."),
        (lambda: ThoughtGraph(max_calls=0), "ThoughtGraph.max_calls: 0. Allowed: 1 or more."),
        (lambda: SelfPlay(roles=("", "a", "b")), r"SelfPlay.roles: .*Allowed: \(\) or 2 roles"),
        (
            lambda: SelfPlay(roles=("", "a"), frozen=("b",)),
            r"SelfPlay.frozen: .*some of \['', 'a'\]",
        ),
        (lambda: SelfPlay(frozen=("",)), r"SelfPlay.frozen: .*and not all"),
    ],
)
def test_fields_out_of_range_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_solver_that_replies_without_brackets_is_read_as_a_whole():
    assert Sorting().read("1, 2 3\n") == ("1", "2", "3")
