"""TextArena's games between rollouts."""

import random
from importlib.util import find_spec

import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.envs import MultiplayerEnv
from grupo.envs.games import TextArena, TextArenaTasks, text_arena
from tests.helpers.scripted_play import played as alone
from tests.helpers.toy_games import played

installed = pytest.mark.skipif(
    find_spec("textarena") is None, reason="TextArena is not installed: grupo[arena]"
)
SQUARES = TextArena("TicTacToe-v0")
KUHN = TextArena("KuhnPoker-v0")
if find_spec("textarena"):
    SQUARES.check()  # imports it
TOP = (["0", "[1]", "2"], ["3", " 4 "])  # the first player takes the top row


@installed
def test_who_wins_is_paid_by_who_loses():
    (first, second), heard = played(TOP, world=SQUARES)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert (first.reward_terms["invalid"], first.reward_terms["turns"]) == (0.0, 3.0)
    assert second.step_values["reward"][-1] == -1.0
    assert "You are Player 0" in heard[0][0][0]
    assert "You are Player 1" in heard[0][1][0]


@installed
def test_a_player_is_told_what_was_said_since_its_last_move():
    _, heard = played(TOP, world=SQUARES)
    last = heard[0][0][-1]
    assert last.startswith("Player 0 placed their symbol (O) in cell 1.")
    assert "Player 1: [4]\n" in last
    assert "You are Player" not in last


@installed
def test_one_move_against_the_rules_is_forgiven_and_two_lose():
    (first, second), heard = played((["0"], ["0", "nine"]), world=SQUARES)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert (first.reward_terms["invalid"], second.reward_terms["invalid"]) == (0.0, 2.0)
    assert "invalid move" in heard[0][1][1]


@installed
def test_a_move_against_the_rules_may_have_its_price():
    world = TextArena("TicTacToe-v0", invalid_move_penalty=0.25)
    (first, second), _ = played((["0", "0", "1", "2"], ["3", "4"]), world=world)
    assert (first.reward, second.reward) == (0.75, -1.0)
    assert first.step_values["reward"] == (0.0, -0.25, 0.0, 1.0)
    assert first.reward_terms["invalid"] == 1.0


@installed
def test_nobody_is_shown_the_others_card_and_deals_differ_by_task():
    def card(key, seat):
        _, heard = played((["check"] * 9, ["check"] * 9), world=KUHN, task=Task(key, "Kuhn"))
        told = heard[0][seat][0]
        return told.partition("Your card is: ")[2][:3]

    deals = {key: (card(key, 0), card(key, 1)) for key in "abcdef"}
    assert all(one != other for one, other in deals.values())
    assert len(set(deals.values())) > 1
    assert deals["a"] == (card("a", 0), card("a", 1))


@installed
def test_what_a_game_draws_is_not_missed_by_others():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    played((["check"] * 9, ["check"] * 9), world=KUHN)
    assert random.random() == expected


@installed
@pytest.mark.parametrize("seat", [0, 1])
def test_alone_it_plays_against_what_is_offered_at_random(seat):
    task = Task("k", "squares", columns={"seat": seat})
    rollouts = alone(MultiplayerEnv(SQUARES), list("012345678"), task=task)
    assert rollouts[0].reward_terms["over"] == 1
    assert rollouts[0].reward in (-1.0, 0.0, 1.0)


def test_games_are_played_alone_or_in_turn_as_first_and_second():
    assert [task.columns for task in TextArenaTasks("g", 3, versus_opponent=True).load()] == [
        {"seat": 0},
        {"seat": 1},
        {"seat": 0},
    ]
    own, guest = (TextArenaTasks("g", 4, versus_opponent=seated).load() for seated in (False, True))
    assert own[0].columns == {}
    assert len({task.key for task in (*own, *guest)}) == 8


@installed
def test_a_game_that_it_has_not_got_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no game 'TicTacTo-v0'. Did you mean 'TicTacToe-v0'\?"):
        TextArena("TicTacTo-v0").check()


def test_without_text_arena_it_is_refused(monkeypatch):
    monkeypatch.setattr(text_arena, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"Install the extra: grupo\[arena\]"):
        SQUARES.check()
