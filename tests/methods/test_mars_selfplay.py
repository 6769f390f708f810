"""MARS: hand-computed advantages and training by self-play."""

import asyncio
from math import exp, sqrt

import pytest
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.core.types import Group, Task
from grupo.envs import MultiplayerEnv, StepResult
from grupo.methods.mars_selfplay import SeatAdvantage, mars_selfplay
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.rollouts.samplers import SelfPlay
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.smoke.echo_env import DIGITS, MAX_NEW_TOKENS
from grupo.testing.smoke.tiny_model import STUDENT_STEPS, trained_model
from grupo.training.learner import Learner
from grupo.util.event_loop import run_coroutine


def games(rewards, seats, **more):
    """Rollouts with one response per turn and the reward of each turn."""
    width = max(map(len, rewards))
    return make_batch(
        group=[0] * len(rewards),
        length=[len(turns) for turns in rewards],
        turn=[[*range(width)]] * len(rewards),
        reward_terms={"seat": seats},
        signals={"step/reward": [[*turns, 9.0][:width] for turns in rewards]},
        **more,
    )


def test_advantage_is_reward_to_go_less_seat_mean():
    batch = games([[0.0, 1.0], [0.0, 0.0]], [0.0, 0.0])
    # m = 1/4; less m: -1/4, 3/4 and -1/4, -1/4; sums 1/2, 3/4 and -1/2, -1/4; their mean is 1/8
    A = SeatAdvantage()(batch.reward, batch)
    assert A.tolist() == [[0.5 - 0.125, 0.75 - 0.125], [-0.5 - 0.125, -0.25 - 0.125]]
    white = batch.with_advantage(mars_selfplay().advantage).advantage
    deviation = sqrt((2 * 0.375**2 + 2 * 0.625**2) / 3)  # their mean is 0
    assert white.tolist() == [
        pytest.approx([0.375 / deviation, 0.625 / deviation]),
        pytest.approx([-0.625 / deviation, -0.375 / deviation]),
    ]


def test_seat_mean_is_removed():
    batch = games([[1.0], [-1.0], [1.0], [-1.0]], [0.0, 1.0, 0.0, 1.0])
    assert SeatAdvantage()(batch.reward, batch).abs().max() == 0
    assert batch.with_advantage(mars_selfplay().advantage).advantage.abs().max() == 0


def test_repeated_values_count_once_in_second_mean():
    # m = 1/3; sums 2/3, 2/3, -4/3; the mean of 2/3 and -4/3 is -1/3
    batch = games([[1.0], [1.0], [-1.0]], [0.0, 0.0, 0.0])
    assert SeatAdvantage()(batch.reward, batch)[:, 0].tolist() == pytest.approx([1.0, 1.0, -1.0])


def test_actions_of_a_turn_share_advantage_and_masked_actions_have_none():
    batch = make_batch(
        group=[0, 0],
        length=[3, 1],
        turn=[[0, 0, 1], [0, 0, 0]],
        reward_terms={"seat": [0.0, 0.0]},
        signals={"step/reward": [[0.0, 1.0, -1.0], [3.0, 0.0, 0.0]]},
    )
    # m = 1; less m: 0, -2 and 2; sums -2, -2 and 2; their mean is 0
    assert SeatAdvantage()(batch.reward, batch).tolist() == [[-2.0, -2.0, -2.0], [2.0, 0.0, 0.0]]


def test_negative_advantage_loss_is_capped():
    batch = games([[1.0], [-1.0]], [0.0, 0.0], advantage=[1.0, -1.0])
    loss = mars_selfplay(kl_coef=0.0).loss(perturb_logp(batch, [[1.0], [1.0]]), batch)
    assert exp(1.0) > 1.4
    assert loss[:, 0].tolist() == pytest.approx([-1.2, 1.4])


def test_loss_is_mean_over_rollouts_of_mean_over_tokens():
    batch = make_batch(group=[0, 0], length=[1, 4])
    weight = mars_selfplay().aggregation(batch)  # 1/2 for each rollout: 1/2, and 1/8 four times
    assert weight.tolist() == [[0.5, 0.0, 0.0, 0.0], [0.125] * 4]


def test_defaults_match_release():
    assert mars_selfplay().sampler == SelfPlay(1, players=2)
    assert mars_selfplay().requires.all_signals == {"step/reward", "logp@ref"}


class Higher:
    """Two players each give a digit: the higher one wins, and any other text loses."""

    def reset(self, task):
        self.digits, self.shown = [], task.reference_answer
        return StepResult(f"={self.shown}", next_player=0)

    def step(self, text):
        self.digits.append(DIGITS.find(text[-1:] or "?"))
        if len(self.digits) == 1:
            return StepResult(f"={self.shown}", next_player=1)
        first, second = self.digits
        sign = float((first > second) - (first < second))
        return StepResult("", done=True, player_rewards=(sign, -sign))


def any_digit(observation, chance):
    return chance.choice(DIGITS)


class Games:
    """Games of self-play, or against the fixed opponent, alternating first and second seat."""

    def __init__(self, count, *, versus_opponent=False):
        columns = [{"seat": i % 2} if versus_opponent else {} for i in range(count)]
        name = "seated" if versus_opponent else "game"  # the key of a task seeds its rollouts
        self.tasks = [
            Task(f"{name} {i}", "=", "012"[i % 3], columns=c) for i, c in enumerate(columns)
        ]

    def load(self):
        return self.tasks


def negative(x: Tensor, batch: Batch) -> Tensor:
    return -x


def win_rates(method, steps=30) -> tuple[float, float]:
    """The fraction of games won against random digits, before and after training."""
    recipe = Recipe(
        policy=CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS),
        env=MultiplayerEnv(Higher, opponent=any_digit),
        tasks=Games(12),
        eval_tasks=Games(12, versus_opponent=True),
        method=method,
        max_steps=steps,
        prompts_per_step=4,
        learning_rate=5e-3,
    )
    learner = Learner(recipe)

    def won() -> float:
        arguments = (learner.policy, recipe.env, learner.eval_tasks)
        return evaluate(
            *arguments, num_attempts=16, success=SuccessCriterion("env_reward")
        ).sampled.value

    before = won()
    for _ in range(steps):
        learner.step()
    return before, won()


def test_games_depend_on_task_key_only():
    policy = CausalLM(trained_model(STUDENT_STEPS), max_new_tokens=MAX_NEW_TOKENS).build()
    env, (one, other) = MultiplayerEnv(Higher), Games(2).load()

    async def beside() -> list[Group]:
        arena = env.open()
        acts = [policy.actor(key) for key in (3, 8)]
        plays = (
            SelfPlay(4)(task, arena, act) for task, act in zip((one, other), acts, strict=True)
        )
        return list(await asyncio.gather(*plays))

    def recorded_responses(group: Group) -> list[list[tuple]]:
        return [[(a.observation, a.items, a.rng_key) for _, a in r.turns] for r in group.rollouts]

    alone = run_coroutine(SelfPlay(4)(one, env.open(), policy.actor(3)))
    assert recorded_responses(alone) == recorded_responses(run_coroutine(beside())[0])
    assert len({a.rng_key for r in alone.rollouts for _, a in r.turns}) == 8
    assert [r.reward_terms["seat"] for r in alone.rollouts] == [0, 1] * 4


@pytest.mark.slow
def test_trains_by_self_play_and_flipped_sign_trains_to_lose():
    method = mars_selfplay(kl_coef=0.0)
    before, after = win_rates(method)
    initial_rate, flipped = win_rates(method.replace(advantage=chain(method.advantage, negative)))
    assert before == initial_rate
    assert after > before + 0.2
    assert flipped < before + 0.05


def test_step_has_48_minibatches():
    assert mars_selfplay().updates == Updates(minibatches=48)
