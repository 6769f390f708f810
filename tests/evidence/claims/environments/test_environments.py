"""Vectorised environments against slow references, and their bounds."""

import itertools

import numpy as np
import pytest

from grupo.evidence.claims.environments import (
    Attempts,
    Corridor,
    KeyPositions,
    ManyModes,
    PaddedAnswers,
    TabularEnv,
    sample,
)

SMALL = {
    "padded_answers": PaddedAnswers(num_tasks=3, num_symbols=2, max_depth=2, max_length=5),
    "many_modes": ManyModes(num_tasks=4, num_items=3, length=3, num_modes=2),
    "key_positions": KeyPositions(num_tasks=4, num_items=3, length=4, max_keys=2),
    "corridor": Corridor(num_tasks=2, num_items=3, num_states=3, max_length=5),
}


@pytest.fixture(params=SMALL.values(), ids=SMALL.keys())
def env(request) -> TabularEnv:
    return request.param(7)


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def attempts_of(env, logp, count=200, seed=0) -> Attempts:
    task = np.arange(count) % env.num_tasks
    return sample(env, logp, task, task, np.random.default_rng(seed))


def test_sampling_equals_a_loop_over_rollouts_and_actions(env):
    logp = log_softmax(env.prior)
    attempts = attempts_of(env, logp, count=30)
    uniform = np.random.default_rng(0).random((env.max_length, 30))
    for row in range(30):
        cell = env.first_cell[row % env.num_tasks]
        items = []
        while cell >= 0 and len(items) < env.max_length:
            t = len(items)
            assert attempts.cell[row, t] == cell
            total = 0.0
            item = -1
            while total < uniform[t, row]:
                item += 1
                total += np.exp(logp[cell, item])
            assert attempts.item[row, t] == item
            assert attempts.logp[row, t] == pytest.approx(logp[cell, item])
            items.append(item)
            cell = env.next_cell[cell, item]
        assert attempts.length[row] == len(items)
        assert attempts.truncated[row] == (cell >= 0)
        assert attempts.mask[row].sum() == len(items)


def test_frequencies_of_first_items_are_the_policys_probabilities(env):
    logp = log_softmax(env.prior)
    attempts = attempts_of(env, logp, count=4000 * env.num_tasks)
    first = attempts.item[attempts.task == 0, 0]
    frequency = np.bincount(first, minlength=logp.shape[1]) / len(first)
    assert frequency == pytest.approx(np.exp(logp[env.first_cell[0]]), abs=0.03)  # 3.8 sigma


def test_every_next_cell_exists_and_a_logit_and_a_preference_belong_to_each_item(env):
    num_cells, num_items = env.prior.shape
    assert env.next_cell.shape == env.preferred.shape == (num_cells, num_items)
    assert env.next_cell.min() == -1
    assert env.next_cell.max() < num_cells
    assert env.own.shape == (num_cells,)
    assert env.common.shape[0] == num_cells


def test_a_seed_draws_the_same_tasks_and_another_seed_others(env):
    builder = next(b for b in SMALL.values() if b(7).max_length == env.max_length)
    assert not np.array_equal(builder(7).prior, builder(8).prior) or not np.array_equal(
        builder(7).preferred, builder(8).preferred
    )
    assert np.array_equal(builder(7).prior, builder(7).prior)


def test_the_oracle_solves_what_random_items_hardly_solve(env):
    oracle = log_softmax(20.0 * env.preferred)
    uniform = log_softmax(np.zeros_like(env.prior))
    rng = np.random.default_rng(1)
    success = {}
    for name, logp in {"oracle": oracle, "uniform": uniform}.items():
        attempts = attempts_of(env, logp, count=2000)
        success[name] = env.score(attempts, rng).correct.mean()
    assert success["oracle"] == 1.0
    assert success["uniform"] < 0.5


def enumerate_success(env: TabularEnv, task: int) -> dict[tuple[int, ...], float]:
    """Whether each complete sequence of items is correct, by sampling every one of them."""
    num_items = env.prior.shape[1]
    correct = {}
    for items in itertools.product(range(num_items), repeat=env.max_length):
        cells = []
        cell = env.first_cell[task]
        for item in items:
            cells.append(cell)
            cell = env.next_cell[cell, item]
            if cell < 0:
                break
        length = len(cells)
        row = np.zeros((1, env.max_length), dtype=np.int64)
        cell_row = row.copy()
        row[0, :length] = items[:length]
        cell_row[0, :length] = cells
        one = np.array([task])
        attempt = Attempts(
            one,
            one * 0,
            cell_row,
            row,
            row * 0.0,
            np.array([length]),
            np.array([cell >= 0]),
        )
        correct[items[:length]] = env.score(attempt, np.random.default_rng(0)).correct[0]
    return correct


@pytest.mark.parametrize("task", [0, 1])
def test_a_padded_answer_is_correct_if_it_has_the_symbols_and_ends(task):
    env = SMALL["padded_answers"](7)
    depth = 1 + task
    filler, end = 2, 3
    symbols = [int(env.preferred[cell].argmax()) for cell in _cells_without_filler(env, task)]
    assert len(symbols) == depth
    for items, correct in enumerate_success(env, task).items():
        without_filler = [item for item in items if item != filler]
        assert correct == (without_filler == [*symbols, end]), items


def _cells_without_filler(env, task):
    cell = env.first_cell[task]
    while (item := int(env.preferred[cell].argmax())) < 2:
        yield cell
        cell = env.next_cell[cell, item]


@pytest.mark.parametrize("task", range(4))
def test_many_modes_accept_exactly_their_number_of_answers(task):
    env = SMALL["many_modes"](7)
    correct = enumerate_success(env, task)
    assert sum(correct.values()) == 2
    likeliest = max(correct, key=lambda items: _logp_of(env, task, items))
    assert correct[likeliest] == (task >= 2)  # half of the tasks are traps


def _logp_of(env, task, items):
    logp = log_softmax(env.prior)
    cell = env.first_cell[task]
    total = 0.0
    for item in items:
        total += logp[cell, item]
        cell = env.next_cell[cell, item]
    return total


def test_the_majority_is_the_most_frequent_answer_of_each_group():
    env = SMALL["many_modes"](7)
    attempts = attempts_of(env, log_softmax(env.prior), count=60)
    terms = env.score(attempts, np.random.default_rng(0)).terms
    for group in range(4):
        rows = np.flatnonzero(attempts.group == group)
        labels = [terms["cluster"][row] for row in rows]
        most = max(labels.count(label) for label in labels)
        votes = [float(labels.count(label) == most) for label in labels]
        assert terms["majority"][rows].tolist() == votes


@pytest.mark.parametrize("task", range(4))
def test_key_positions_decide_alone(task):
    env = SMALL["key_positions"](7)
    preferred = env.preferred[4 * task : 4 * task + 3]
    keys = {t: int(row.argmax()) for t, row in enumerate(preferred) if row.any()}
    assert len(keys) == 1 + task % 2
    for items, correct in enumerate_success(env, task).items():
        assert correct == all(items[t] == item for t, item in keys.items())


def test_noise_and_terms_change_the_reward_and_not_what_evaluation_counts():
    clean = KeyPositions(num_tasks=4, num_items=3, length=4, max_keys=2)
    noisy = KeyPositions(
        num_tasks=4, num_items=3, length=4, max_keys=2, false_positive=0.25, false_negative=0.5
    )
    attempts = attempts_of(clean(7), log_softmax(clean(7).prior), count=20_000)
    exact = clean(7).score(attempts, np.random.default_rng(5))
    scores = noisy(7).score(attempts, np.random.default_rng(5))
    assert np.array_equal(exact.reward, exact.correct)
    assert np.array_equal(scores.correct, exact.correct)
    is_correct = exact.correct > 0
    assert scores.reward[is_correct].mean() == pytest.approx(0.5, abs=0.02)
    assert scores.reward[~is_correct].mean() == pytest.approx(0.25, abs=0.02)
    summed = KeyPositions(
        num_tasks=4, num_items=3, length=4, max_keys=2, term_weights=(1.0, 2.0, 4.0)
    )
    result = summed(7).score(attempts, np.random.default_rng(0))
    showy = result.terms["thinking"]
    expected = exact.correct + 2 * (attempts.item[:, -1] == 0) + 4 * showy
    assert result.reward == pytest.approx(expected)
    assert 0 < showy.mean() < 1


@pytest.mark.parametrize("task", [0, 1])
def test_a_walk_is_correct_if_it_passes_the_last_state(task):
    env = SMALL["corridor"](7)
    for items, correct in enumerate_success(env, task).items():
        state = 0
        for item in items:
            cell = 3 * task + state
            following = env.next_cell[cell, item]
            assert following in (-1, cell - 1, cell, cell + 1)
            state = 3 if following < 0 else following - 3 * task
        assert correct == (state == 3)


def test_step_rewards_add_up_to_the_outcome_or_to_the_progress():
    outcome = SMALL["corridor"](7)
    progress = Corridor(
        num_tasks=2, num_items=3, num_states=3, max_length=5, step_outcome=0.0, step_progress=1.0
    )(7)
    attempts = attempts_of(outcome, log_softmax(outcome.prior))
    rng = np.random.default_rng(0)
    sparse = outcome.score(attempts, rng)
    assert (sparse.step_values["reward"] * attempts.mask).sum(1) == pytest.approx(sparse.reward)
    dense = progress.score(attempts, rng)
    total = (dense.step_values["reward"] * attempts.mask).sum(1)
    assert total[dense.correct > 0] == pytest.approx(1.0)
    assert (total[dense.correct == 0] < 1).all()
    assert (total >= 0).all()
