"""Selecting and printing rollouts of a run."""

import io
import json

import pytest
from rich.console import Console

from grupo.report.rollouts import RolloutFilter, format_rollouts, select_rollouts
from grupo.util.errors import ConfigError


def rollout(step=0, text="4", reward: float | str = 1.0, **more):
    return {
        "step": step,
        "task": "abcdef0123",
        "prompt": "2 + 2 =",
        "text": text,
        "turns": [],
        "reward": reward,
        "reward_terms": {"right": 1.0, "form": 0.5},
        "advantage": 0.7,
        "length": 2,
        "truncated": False,
        "error": "",
        **more,
    }


JOURNAL = [
    rollout(0, "a", 0.5),
    rollout(0, "b", 0.0, task="xyz"),
    rollout(1, "c", 1.0),
    rollout(1, "d", "NaN", error="task abc, rollout 1: reward 'right' hung", advantage=None),
    rollout(2, "e", 0.25),
]


@pytest.mark.parametrize(
    ("choice", "texts"),
    [
        ({}, "abcde"),
        ({"limit": 2}, "de"),
        ({"best": 2}, "ca"),
        ({"worst": 2}, "be"),
        ({"best": 1, "worst": 1}, "cb"),
        ({"best": 9, "rollout_filter": RolloutFilter(step=1)}, "c"),
    ],
)
def test_select_by_best_worst_or_limit(write_run, choice, texts):
    assert "".join(r["text"] for r in select_rollouts(write_run(JOURNAL), **choice)) == texts


@pytest.mark.parametrize(
    ("rollout_filter", "texts"),
    [
        (RolloutFilter(), "abcde"),
        (RolloutFilter(step=1), "cd"),
        (RolloutFilter(step=0, max_reward=0.25), "b"),
        (RolloutFilter(min_reward=0.25), "ace"),
        (RolloutFilter(max_reward=0.25), "be"),
        (RolloutFilter(max_reward=0.0), "b"),
        (RolloutFilter(contains="d"), "d"),
        (RolloutFilter(task_prefix="xy"), "b"),
        (RolloutFilter(failed_only=True), "d"),
        (RolloutFilter(step=9), ""),
    ],
)
def test_filter_requires_every_condition(write_run, rollout_filter, texts):
    assert "".join(r["text"] for r in select_rollouts(write_run(JOURNAL), rollout_filter)) == texts


def test_selected_rollouts_are_journal_records(write_run):
    ids = ("0.0", "0.1", "1.0", "1.1", "2.0")
    expected = [{**r, "id": x, "parents": []} for r, x in zip(JOURNAL, ids, strict=True)]
    assert select_rollouts(write_run(JOURNAL)) == expected
    json.dumps(select_rollouts(write_run(JOURNAL)), allow_nan=False)


def test_torn_last_line_is_skipped(write_run):
    run = write_run(JOURNAL, end='{"step": 3, "te')
    assert len(select_rollouts(run)) == 5


def test_zero_bytes_are_skipped_in_the_last_line_and_rejected_elsewhere(write_run):
    assert len(select_rollouts(write_run(JOURNAL, end='{"step": \0\0\0\n'))) == 5
    broken = write_run(JOURNAL, end='{"step": \0\n{"step": 4}\n')
    with pytest.raises(ConfigError, match=r"rollouts\.jsonl, line 6"):
        select_rollouts(broken)


def test_folder_without_a_run_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match=r"recipe\.json"):
        select_rollouts(tmp_path)


def test_run_without_rollouts_gives_an_empty_list(write_run):
    assert select_rollouts(write_run()) == []


def rendered(rollouts) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    console.print(format_rollouts(rollouts))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_panel_shows_prompt_text_reward_terms_advantage_and_step():
    output = rendered([rollout(3, "four")])
    for fact in ("step 3", "abcdef01", "reward 1 (right 1, form 0.5)", "advantage +0.700"):
        assert fact in output
    for line in ("2 + 2 =", "four", "2 actions"):
        assert line in output
    assert max(map(len, output.splitlines())) <= 100


def test_panel_shows_error_and_truncation():
    failed = rollout(reward="NaN", error="it hung", advantage=None, truncated=True)
    output = rendered([failed])
    for fact in ("reward nan", "not trained on", "it hung", "2 actions, truncated"):
        assert fact in output


def test_chat_prompt_is_shown_message_by_message():
    image = [{"type": "image", "url": "x.png"}]
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": image}]
    output = rendered([rollout(prompt=chat)])
    assert "[system] Be brief." in output
    assert '[user] {"type": "image", "url": "x.png"}' in output


def test_control_characters_and_markup_are_escaped():
    hostile = "[red]no[/red] \x1b[31mred\x1b]0;title\x07 \u202eback [/]"
    output = rendered([rollout(text=hostile, prompt=hostile, task="\x1b[2J[b]", error=hostile)])
    assert "\x1b" not in output.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "\u202e" not in output
    assert r"[red]no[/red] \x1b[31mred\x1b]0;title\x07 \u202eback [/]" in output


def test_empty_selection_prints_a_message():
    assert rendered([]) == "No rollout matches.\n"


def test_select_from_a_real_run(real_run):
    best = select_rollouts(real_run, best=3)
    assert [r["reward"] for r in best] == sorted((r["reward"] for r in best), reverse=True)
    assert len(select_rollouts(real_run, limit=1000)) == 96  # 3 steps x 4 prompts x 8 rollouts
    assert "+ 1 =" in rendered(best)


def test_panel_shows_the_reference_answer_and_every_turn_apart():
    turns = [{"text": "look"}, {"observation": "a wall", "text": "left"}]
    output = rendered([rollout(text="lookleft", turns=turns, reference_answer="42")])
    lines = [line.strip("│ \n") for line in output.splitlines()]
    start = lines.index("reference answer:")
    assert lines[start : start + 8] == [
        *("reference answer:", "42", "policy:", "look"),
        *("environment:", "a wall", "policy:", "left"),
    ]


@pytest.mark.parametrize("name", ["task", "text", "error", "reward_terms"])
def test_a_field_of_another_type_is_one_error_with_its_line(name, write_run):
    lines = [rollout(), {**rollout(), name: 3}]
    run = write_run(rollouts=lines)
    with pytest.raises(ConfigError, match=rf"line 2: {name}: 3 is of another type"):
        select_rollouts(run)
