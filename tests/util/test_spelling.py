"""The nearest allowed spelling of a name."""

import time

from grupo.util.spelling import nearest


def test_a_text_of_a_million_letters_is_near_to_no_name_at_once():
    names = [f"name_{i}" for i in range(200)]
    started = time.process_time()
    assert nearest(10**6 * "a", names) == ""
    assert time.process_time() - started < 0.5  # sorting it for each name takes seconds


def test_the_longest_text_with_the_similarity_of_the_cutoff_is_near():
    # the similarity is 2 * 3 / (3 + length): 0.6 for 7 letters, 0.55 for 8
    assert nearest("abcdefg", ["abc"], cutoff=0.6) == "abc"
    assert nearest("abcdefgh", ["abc"], cutoff=0.6) == ""
    assert nearest("any", []) == ""
