"""Games of TextArena with three players and more."""

import time
from importlib.util import find_spec
from random import Random

import pytest

from grupo.config.validate import check_recipe, check_tasks
from grupo.core.types import Task
from grupo.envs import MultiplayerEnv
from grupo.envs.games import TextArena, TextArenaTasks
from grupo.envs.games.text_arena import NOTHING_NEW, format_since_last_move
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.samplers import SelfPlay
from grupo.util.errors import ConfigError
from tests.helpers.scripted_play import play
from tests.helpers.toy_games import play_games

if find_spec("textarena") is None:
    pytest.skip("TextArena is not installed: grupo[arena]", allow_module_level=True)

BOARD = TextArena("ThreePlayerTicTacToe-v0", players=3)
DICE = TextArena("LiarsDice-v0", players=3)
DILEMMA = TextArena("ThreePlayerIPD-v0", players=3)
BOARD.check()  # the import would exceed the time limit of a step
# cells of a board of 5 x 5: the first player takes the top row
TOP_ROW = (["0", "1", "2", "3"], ["5", "6", "7"], ["10", "11", "12"])


def test_every_player_has_its_own_reward():
    rollouts, observations = play_games(TOP_ROW, env_factory=BOARD, players=3)
    assert [r.reward for r in rollouts] == [1.0, -1.0, -1.0]
    assert [r.reward_terms["seat"] for r in rollouts] == [0, 1, 2]
    assert [r.reward_terms["turns"] for r in rollouts] == [4, 3, 3]
    assert [r.step_values["reward"][-1] for r in rollouts] == [1.0, -1.0, -1.0]
    for seat in range(3):
        assert f"You are Player {seat}" in observations[0][seat][0]


def test_a_player_observes_the_moves_of_all_others_since_its_last_move():
    _, observations = play_games(TOP_ROW, env_factory=BOARD, players=3)
    second = observations[0][0][1]
    assert "Player 1: [5]\n" in second
    assert "Player 2: [10]\n" in second
    assert "Player 0: " not in second


def test_an_eliminated_player_has_no_further_turn_and_its_rank_as_reward():
    # the first and the third player break the rules twice; the second one is left
    texts = (["x", "x"], ["[Bid: 1, 2]"], ["y", "y"])
    rollouts, observations = play_games(texts, env_factory=DICE, players=3)
    assert [len(r.turns) for r in rollouts] == [2, 1, 2]
    assert [r.reward for r in rollouts] == [-1.0, 1.0, 0.0]
    assert [r.reward_terms["invalid_moves"] for r in rollouts] == [2.0, 0.0, 2.0]
    assert [r.error for r in rollouts] == ["", "", ""]
    assert "Player 0 was eliminated by invalid move." in observations[0][1][0]


def test_the_game_goes_on_without_an_eliminated_player():
    texts = (["x", "x"], ["[Bid: 1, 2]", "y", "y"], ["[Bid: 2, 2]"])
    rollouts, _ = play_games(texts, env_factory=DICE, players=3)
    assert [len(r.turns) for r in rollouts] == [2, 3, 1]
    assert [r.reward for r in rollouts] == [-1.0, 0.0, 1.0]


def test_an_invalid_move_costs_its_player_the_penalty_at_elimination_too():
    game = TextArena("LiarsDice-v0", invalid_move_penalty=0.25, players=3)
    texts = (["x", "x"], ["[Bid: 1, 2]"], ["y", "y"])
    rollouts, _ = play_games(texts, env_factory=game, players=3)
    assert [r.reward for r in rollouts] == [-1.0 - 0.5, 1.0, 0.0 - 0.5]


def test_simultaneous_decisions_are_hidden_until_all_have_decided():
    chat = ["hello"] * 3
    texts = [[*chat, f"[{(seat + 1) % 3} defect]", "next"] for seat in range(3)]
    rollouts, observations = play_games(texts, env_factory=DILEMMA, players=3, max_turns=5)
    assert [len(r.turns) for r in rollouts] == [5, 4, 4]
    for seat in range(3):
        assert "defect]" not in observations[0][seat][3].replace("`[pid defect]`", "")
    assert "Player 0 vs Player 1 chose to defect and cooperate" in observations[0][0][4]


def test_the_game_decides_who_begins():
    game = TextArena("Poker-v0", players=5)
    texts = [["[fold]"]] * 5
    rollouts, observations = play_games(texts, env_factory=game, players=5, max_turns=1)
    assert [len(seen) for seen in observations[0]] == [0, 0, 0, 1, 0]  # left of the big blind
    assert [r.reward_terms["seat"] for r in rollouts if not r.error] == [3.0]


@pytest.mark.parametrize("seat", [0, 1, 2])
def test_a_rollout_plays_a_chosen_seat_against_an_opponent_in_all_others(seat):
    def first_free_cell(observation, rng: Random):
        return rng.choice([f"[{cell}]" for cell in range(25)])

    task = Task("k", "board", columns={"seat": seat})
    env = MultiplayerEnv(BOARD, opponent=first_free_cell, max_turns=25)
    (rollout,) = play(env, [str(cell) for cell in range(25)], task=task)
    assert f"You are Player {seat}" in rollout.turns[0][0]
    assert (rollout.error, rollout.reward_terms["done"]) == ("", 1.0)
    assert rollout.reward in (-1.0, 0.0, 1.0)


def test_tasks_against_an_opponent_take_every_seat_in_turn():
    tasks = TextArenaTasks("g", 5, versus_opponent=True, players=3).load()
    assert [task.columns["seat"] for task in tasks] == [0, 1, 2, 0, 1]
    with pytest.raises(ConfigError, match=r"has the seat 2. Allowed: 0 to 1"):
        check_tasks(TextArena("TicTacToe-v0"), tasks)


def test_a_player_without_new_messages_is_told_that_it_is_its_turn():
    game = TextArena("ThreePlayerTicTacToe-v0", format_messages=lambda *_: "", players=3)
    _, observations = play_games(TOP_ROW, env_factory=game, players=3)
    assert observations[0][0] == [NOTHING_NEW] * 4


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (TextArena("ThreePlayerTicTacToe-v0"), "with 2 players: .*exactly three players"),
        (TextArena("Taboo-v0", players=5), "with 5 players: .*must be even"),
        (TextArena("TicTacToe-v0", players=3), "with 3 players: .*has to be 2, received 3"),
    ],
)
def test_a_number_of_players_that_the_game_forbids_is_refused(game, message):
    with pytest.raises(ConfigError, match=message):
        game.check()


def test_self_play_with_another_number_of_players_is_refused():
    def recipe(players):
        method = Method(sampler=SelfPlay(2, players=players))
        return Recipe(CausalLM("model"), env=MultiplayerEnv(BOARD), method=method, tasks=TASKS)

    check_recipe(recipe(3))
    message = r"SelfPlay has 2, and TextArena\('ThreePlayerTicTacToe-v0'\) 3"
    with pytest.raises(ConfigError, match=message):
        check_recipe(recipe(2))


TASKS = TextArenaTasks("ThreePlayerTicTacToe-v0", 2, players=3)


def hang_at_cell_24(player, messages):
    if any(sender == 0 and "[24]" in text for sender, text, _ in messages):
        time.sleep(1.5)
    return format_since_last_move(player, messages)


def test_a_game_that_hangs_does_not_stop_others_though_all_share_one_random_generator():
    game = TextArena("ThreePlayerTicTacToe-v0", format_messages=hang_at_cell_24, players=3)
    hanging = (["24"], [], [])
    rollouts, _ = play_games(hanging, TOP_ROW, env_factory=game, players=3, time_limit=0.3)
    assert rollouts[0].reward_terms["answer_error"] == 1.0
    assert [r.reward for r in rollouts[-3:]] == [1.0, -1.0, -1.0]
