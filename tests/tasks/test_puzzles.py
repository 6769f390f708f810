"""Puzzles: every solution is found, and the reward knows the whole set."""

import json
import time

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AfterThinking, InsideTag, SetOfSolutions
from grupo.tasks import TREE, AlphameticTasks, Prior, SudokuTasks
from grupo.tasks.puzzles import alphametic_task, solve_alphametic, solve_sudoku
from grupo.util.errors import ConfigError

REWARD = SetOfSolutions(extract=AfterThinking(InsideTag("answer")))


def score(task: Task, answer: object, reward: SetOfSolutions = REWARD) -> float:
    text = f"<think>0 2 or 1 1 or 2 0</think><answer>{json.dumps(answer)}</answer>"
    return reward.score(task, Rollout(((task.prompt, Response((1,), (0.0,), text=text)),)))


def test_the_full_set_is_1_half_of_it_0_and_no_list_minus_1():
    task = alphametic_task("A+B=3")
    full = [[0, 3], [1, 2], [2, 1], [3, 0]]
    assert task.reference_answer == full
    assert score(task, full[::-1]) == 1.0
    assert score(task, full[:2]) == 0.0
    half = SetOfSolutions(partial=0.5, extract=REWARD.extract)
    assert score(task, full[:2], half) == 0.5
    assert score(task, [*full, [1, 3]]) == 0.0
    assert score(task, "A is 1") == -1.0
    without_tags = Rollout(((task.prompt, Response((1,), (0.0,), text=json.dumps(full))),))
    assert REWARD.score(task, without_tags) == -1.0


def test_alphametics_are_solved_by_hand():
    assert solve_alphametic("A+B=C")[:2] == [(1, 2, 3), (1, 3, 4)]  # 0 + B = C would be B = C
    assert len(solve_alphametic("A+B=C")) == 32  # 36 sums of 1..8 to 9 at most, less 4 of B + B
    assert solve_alphametic("A-B=9") == [(9, 0)]
    assert solve_alphametic("AA+B=CDD") == []  # 99 + 1 = 100 has C = B
    assert solve_alphametic("9A+B=10C")[0] == (1, 9, 0)


@pytest.mark.parametrize("equation", ["A+B", "A*B=C", "", "A=B+C", "AB+CD=EFGH", "a+b=c"])
def test_other_equations_are_refused(equation):
    with pytest.raises(ConfigError, match=r"equation: .* Allowed: numbers of letters"):
        solve_alphametic(equation)


def test_every_generated_alphametic_has_its_own_solution():
    start = time.monotonic()
    tasks = AlphameticTasks(60).load()
    assert all(score(task, task.reference_answer) == 1.0 for task in tasks)
    assert {len(task.reference_answer) > 1 for task in tasks} == {True, False}
    assert AlphameticTasks(60).load()[7] == tasks[7]
    assert AlphameticTasks(60, seed=1).load()[7] != tasks[7]
    assert time.monotonic() - start < 30


def test_every_sudoku_has_completions_that_agree_with_its_givens():
    counts = []
    for task in SudokuTasks(40, givens=5).load():
        givens = [int(c) for line in str(task.prompt).splitlines()[-4:] for c in line]
        counts.append(len(task.reference_answer))
        for grid in task.reference_answer:
            flat = [cell for row in grid for cell in row]
            assert all(given in (0, cell) for given, cell in zip(givens, flat, strict=True))
            columns = list(zip(*grid, strict=True))
            boxes = [
                [grid[r + i][c + j] for i in (0, 1) for j in (0, 1)] for r in (0, 2) for c in (0, 2)
            ]
            assert all(sorted(part) == [1, 2, 3, 4] for part in (*grid, *columns, *boxes))
        wrong = [[[1, 1, 1, 1]] * 4]
        assert score(task, wrong) == 0.0
    assert min(counts) >= 1
    assert max(counts) > 1


def test_there_are_288_sudokus_and_none_with_a_contradiction():
    assert len(solve_sudoku(((0,) * 4,) * 4)) == 288
    assert solve_sudoku(((1, 1, 0, 0), *((0,) * 4,) * 3)) == []


def test_too_few_givens_are_refused():
    with pytest.raises(ConfigError, match=r"SudokuTasks.givens: 3. Allowed: 4 to 16"):
        SudokuTasks(givens=3)


def test_the_tree_prompt_asks_for_candidates_before_the_answer():
    (task,) = Prior(TREE, AlphameticTasks(1)).load()
    assert "candidates" in task.prompt
    assert task.prompt.index("<think>") < task.prompt.index("Each letter")
