"""Memory of thoughts: cells by hand, insert, merge, forget and recall; hashed words."""

import math

import numpy as np
import pytest

from grupo.core.embeddings import HashedWords
from grupo.core.thought_memory import ThoughtMemory, cell_order

PLANES = np.array([[1.0, 0.0], [0.0, 2.0]])


def memory_of(vectors, **fields):
    """An empty memory whose texts are the names of vectors."""
    return ThoughtMemory(lambda text: vectors[text], **fields)


def random_vectors(number, dimensions=32):
    vectors = np.random.default_rng(0).standard_normal((number, dimensions))
    return {str(i): vector for i, vector in enumerate(vectors)}


def texts(memory):
    return sorted(thought.text for cell in memory.cells.values() for thought in cell)


@pytest.mark.parametrize(
    ("vector", "order"),
    [
        ((3.0, 1.0), [0, 1, 3, 2]),  # xR = 3, 2: 3, 2, -3, -2
        ((-3.0, 1.0), [2, 1, 3, 0]),  # -3, 2, 3, -2
        ((1.0, -1.0), [3, 0, 2, 1]),  # 1, -2, -1, 2
    ],
)
def test_cells_are_ordered_by_the_projections_and_their_negatives(vector, order):
    assert cell_order(np.array(vector), PLANES) == order


def test_two_vectors_share_one_of_two_cells_with_probability_1_minus_angle_over_pi():
    rng = np.random.default_rng(1)
    angle = math.pi / 3
    shared = 0
    for _ in range(4000):
        planes = rng.standard_normal((2, 1))
        x, y = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
        shared += cell_order(x, planes)[0] == cell_order(y, planes)[0]
    assert shared / 4000 == pytest.approx(2 / 3, abs=0.03)  # 4 standard errors


def test_each_of_100_random_vectors_in_8_cells_is_recalled_at_rank_1():
    vectors = random_vectors(100)
    memory = memory_of(vectors, num_cells=8).after(vectors)
    assert len(memory) == 100
    assert len(memory.cells) == 8
    assert all(memory.recall(name, 3)[0] == name for name in vectors)


def test_a_merge_of_near_duplicates_leaves_the_later_one():
    # cosines: of a and b 0.99, of a and c 0.8
    vectors = {"a": (1.0, 0.0), "b": (0.99, math.sqrt(1 - 0.99**2)), "c": (0.8, 0.6)}
    memory = memory_of(vectors, num_cells=1, merge_at=0.9).after("acb")
    assert texts(memory) == ["b", "c"]
    assert (memory.merged, memory.forgotten) == (1, 0)
    assert texts(memory_of(vectors, num_cells=1, merge_at=0.995).after("acb")) == ["a", "b", "c"]


def test_only_thoughts_of_one_cell_are_compared():
    vectors = {"a": (1.0, 0.0), "opposite": (-1.0, 0.0)}
    memory = memory_of(vectors, num_cells=2, merge_at=0.9).after(vectors)
    assert len(memory.cells) == 2
    assert memory.recall("a", 2) == ["a"]


def test_a_note_forgets_a_thought_and_the_size_of_a_cell_the_oldest():
    vectors = random_vectors(4)
    memory = memory_of(vectors, num_cells=1, cell_size=2).after(["0", "1", "2"])
    assert texts(memory) == ["1", "2"]
    assert memory.forgotten == 1
    memory = memory.after(["forget:1", "3"])
    assert texts(memory) == ["2", "3"]
    assert (memory.forgotten, memory.merged) == (2, 0)


def test_a_memory_is_the_fold_of_its_notes_and_is_not_changed():
    vectors = random_vectors(6)
    empty = memory_of(vectors)
    first = empty.after(["0", "1", "2"])
    both = first.after(["3", "4", "5"])
    assert texts(both) == texts(empty.after(vectors))
    assert texts(first) == ["0", "1", "2"]
    assert len(empty) == 0


def test_of_equally_similar_thoughts_the_later_one_is_first():
    vectors = {"q": (1.0, 0.0), "early": (0.6, 0.8), "late": (0.6, -0.8), "other": (0.0, 1.0)}
    memory = memory_of(vectors, num_cells=1).after(["early", "late", "other"])
    assert memory.recall("q", 3) == ["late", "early"]  # the cosine of the other one is 0
    assert memory.recall("q", 1) == ["late"]


def test_more_probes_find_what_another_cell_holds():
    vectors = random_vectors(40, 8)
    memory = memory_of(vectors, num_cells=8).after(vectors)
    found = [set(memory.recall("7", 40, probes)) for probes in (1, 4, 8)]
    assert found[0] < found[1] < found[2]
    exact = memory_of(vectors, num_cells=1).after(vectors)
    assert memory.recall("7", 5, 8) == exact.recall("7", 5)


def test_texts_without_words_are_neither_stored_nor_recalled():
    memory = ThoughtMemory(HashedWords()).after(["...", "Bo has a hen"])
    assert texts(memory) == ["Bo has a hen"]
    assert memory.recall("?", 3) == []


def test_hashed_words_of_texts_have_the_cosine_of_their_counts():
    embed = HashedWords(4096)
    x, y = (np.array(embed(text)) for text in ("the hen of Bo", "Bo has the hen"))
    assert x @ y == 3  # bo, hen and the
    assert np.linalg.norm(x) == np.linalg.norm(y) == 2
    assert np.array(embed("hen hen")) @ x == 2
