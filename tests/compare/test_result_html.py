"""Comparisons and their results as HTML, for notebooks."""

import re

NAME = "<b>mine</b>"


def cells(page):
    return re.findall(r"<td[^>]*>(.*?)</td>", page)


def test_a_result_shows_runs_means_differences_and_verdicts(measured):
    values = [0.5 + 0.01 * seed for seed in range(6)]
    page = measured({"base": [0.1] * 6, NAME: values})._repr_html_()
    name, runs, mean, difference, verdict = cells(page)[:5]
    assert name == "&lt;b&gt;mine&lt;/b&gt;"
    assert runs == "6 of 6"
    assert mean.startswith("52.5 [")
    assert difference.startswith("+42.5 [")
    assert verdict == "more"
    assert cells(page)[5:7] == ["base", "6 of 6"]
    assert "<b>" not in page


def test_an_unfinished_result_has_no_mean(measured):
    page = measured({"base": ["waiting"], "mine": ["waiting"]})._repr_html_()
    assert cells(page)[:3] == ["base", "0 of 1", "-"]


def test_a_comparison_shows_its_recipes_and_what_is_held_equal(comparison):
    page = comparison._repr_html_()
    assert "2 seeds; Steps(count=3) each" in page
    assert cells(page)[0] == "grpo (baseline)"
    assert "rollouts per step" in cells(page)[2]
