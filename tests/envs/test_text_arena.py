"""TextArena's games between rollouts."""

import random
from importlib.util import find_spec

import pytest

from grupo.core.types import Task
from grupo.envs import MultiplayerEnv
from grupo.envs.games import TextArena, TextArenaTasks, text_arena
from grupo.util.errors import ConfigError
from tests.helpers.scripted_play import play
from tests.helpers.toy_games import play_games

needs_text_arena = pytest.mark.skipif(
    find_spec("textarena") is None, reason="TextArena is not installed: grupo[arena]"
)
TIC_TAC_TOE = TextArena("TicTacToe-v0")
KUHN = TextArena("KuhnPoker-v0")
if find_spec("textarena"):
    TIC_TAC_TOE.check()  # the import would exceed the time limit of a step
TOP_ROW = (["0", "[1]", "2"], ["3", " 4 "])  # the first player takes the top row


@needs_text_arena
def test_the_winner_gets_one_and_the_loser_minus_one():
    (first, second), observations = play_games(TOP_ROW, env_factory=TIC_TAC_TOE)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert (first.reward_terms["invalid_moves"], first.reward_terms["turns"]) == (0.0, 3.0)
    assert second.step_values["reward"][-1] == -1.0
    assert "You are Player 0" in observations[0][0][0]
    assert "You are Player 1" in observations[0][1][0]


@needs_text_arena
def test_a_player_observes_the_messages_since_its_last_move():
    _, observations = play_games(TOP_ROW, env_factory=TIC_TAC_TOE)
    last = observations[0][0][-1]
    assert last.startswith("Player 0 placed their symbol (O) in cell 1.")
    assert "Player 1: [4]\n" in last
    assert "You are Player" not in last


@needs_text_arena
def test_one_invalid_move_is_forgiven_and_two_lose():
    (first, second), observations = play_games((["0"], ["0", "nine"]), env_factory=TIC_TAC_TOE)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert first.reward_terms["invalid_moves"] == 0.0
    assert second.reward_terms["invalid_moves"] == 2.0
    assert "invalid move" in observations[0][1][1]


@needs_text_arena
def test_an_invalid_move_costs_the_penalty():
    game = TextArena("TicTacToe-v0", invalid_move_penalty=0.25)
    (first, second), _ = play_games((["0", "0", "1", "2"], ["3", "4"]), env_factory=game)
    assert (first.reward, second.reward) == (0.75, -1.0)
    assert first.step_values["reward"] == (0.0, -0.25, 0.0, 1.0)
    assert first.reward_terms["invalid_moves"] == 1.0


@needs_text_arena
def test_players_observe_their_own_card_and_deals_differ_by_task():
    def card(key, seat):
        texts = ["check"] * 9
        _, observations = play_games((texts, texts), env_factory=KUHN, task=Task(key, "Kuhn"))
        return observations[0][seat][0].partition("Your card is: ")[2][:3]

    deals = {key: (card(key, 0), card(key, 1)) for key in "abcdef"}
    assert all(first != second for first, second in deals.values())
    assert len(set(deals.values())) > 1
    assert deals["a"] == (card("a", 0), card("a", 1))


@needs_text_arena
def test_a_game_leaves_the_global_random_generator_as_it_was():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    play_games((["check"] * 9, ["check"] * 9), env_factory=KUHN)
    assert random.random() == expected


@needs_text_arena
@pytest.mark.parametrize("seat", [0, 1])
def test_a_rollout_without_self_play_plays_against_the_random_opponent(seat):
    task = Task("k", "squares", columns={"seat": seat})
    rollouts = play(MultiplayerEnv(TIC_TAC_TOE), list("012345678"), task=task)
    assert rollouts[0].reward_terms["done"] == 1
    assert rollouts[0].reward in (-1.0, 0.0, 1.0)


def test_games_against_an_opponent_alternate_the_seat():
    versus = TextArenaTasks("g", 4, versus_opponent=True).load()
    assert [task.columns for task in versus[:3]] == [{"seat": 0}, {"seat": 1}, {"seat": 0}]
    self_play = TextArenaTasks("g", 4).load()
    assert self_play[0].columns == {}
    assert len({task.key for task in (*self_play, *versus)}) == 8


@needs_text_arena
def test_an_unknown_game_is_a_config_error_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"no game 'TicTacTo-v0'. Did you mean 'TicTacToe-v0'\?"):
        TextArena("TicTacTo-v0").check()


def test_a_missing_text_arena_is_a_config_error(monkeypatch):
    monkeypatch.setattr(text_arena, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"Install the extra: grupo\[arena\]"):
        TIC_TAC_TOE.check()
