"""HTML fragments for notebooks: every text is escaped, and no script or style sheet is in them."""

import math
import re

import pytest

from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.methods.dr_grpo import dr_grpo
from grupo.util import html

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=f()> $\\unsafe{x}$\x1b\u202e'


def rollout(text, **fields):
    return Rollout((("2 + 2 =", Response((1, 2), (0.0, 0.0), text=text)),), **fields)


def group(*rollouts, prompt="2 + 2 =", answer="4"):
    return Group(Task("k", prompt, answer), tuple(rollouts))._repr_html_()


def tags(page):
    return set(re.findall(r"<(\w+)", page))


@pytest.mark.parametrize(
    "page",
    [
        group(rollout(HOSTILE, reward=0.0)),
        group(rollout("4", reward=0.0), prompt=HOSTILE),
        group(rollout("4", reward=0.0), prompt=({"role": HOSTILE, "content": HOSTILE},)),
        group(rollout("4", reward=0.0), answer=HOSTILE),
        group(rollout("4", error=HOSTILE)),
        group(rollout("4", reward=0.0, reward_terms={HOSTILE: 1.0})),
    ],
    ids=["text", "prompt", "chat", "answer", "error", "term"],
)
def test_hostile_text_in_a_group_is_escaped(page):
    assert tags(page) <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "br"}
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.startswith('<div class="tex2jax_ignore mathjax_ignore">')
    assert "&lt;script&gt;" in page


def test_a_group_shows_rewards_terms_lengths_and_errors():
    page = group(
        rollout("4", reward=1.0, reward_terms={"correct": 1.0, "brief": -0.5}),
        rollout("5", error="it raised"),
    )
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page)
    assert cells[:5] == ["0", "1", "1", "-0.5", "2"]
    assert cells[6:11] == ["1", "nan", "", "", "2"]
    assert "it raised" in cells[11]


def test_a_large_group_is_shortened():
    page = group(*(rollout(str(i), reward=0.0) for i in range(40)))
    assert page.count("<tr>") == 1 + 32
    assert "8 more rollouts" in page


def test_a_long_answer_is_shortened():
    assert len(group(rollout(10_000 * "a", reward=0.0))) < 5_000


def test_a_method_shows_what_it_changes_against_grpo():
    page = dr_grpo(max_length=64)._repr_html_()
    assert "<b>aggregation</b>" in page
    assert "<b>sampler</b>" not in Method()._repr_html_()


def test_a_curve_goes_through_the_finite_values():
    svg = html.curve([0.0, math.nan, 1.0, 0.5], "rewards")
    assert 'points="0.0,38.0 120.0,2.0 240.0,20.0"' in svg
    assert 'stroke="currentColor"' in svg  # readable in light and dark
    assert html.curve([1.0, math.nan], "rewards") == ""
