import io
import json

import pytest
from rich.console import Console

from grupo.core.errors import ConfigError
from grupo.report.rollouts import RolloutFilter, format_rollouts, select_rollouts


def rollout(step=0, text="4", reward: float | str = 1.0, **more):
    return {
        "step": step,
        "task": "abcdef0123",
        "prompt": "2 + 2 =",
        "text": text,
        "reward": reward,
        "parts": {"right": 1.0, "form": 0.5},
        "advantage": 0.7,
        "length": 2,
        "truncated": False,
        "failed": "",
        **more,
    }


JOURNAL = [
    rollout(0, "a", 0.5),
    rollout(0, "b", 0.0, task="xyz"),
    rollout(1, "c", 1.0),
    rollout(1, "d", "NaN", failed="task abc, rollout 1: reward 'right' hung", advantage=None),
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
        ({"best": 9, "wanted": RolloutFilter(step=1)}, "c"),
    ],
)
def test_rollouts_are_chosen(written, choice, texts):
    assert "".join(r["text"] for r in select_rollouts(written(JOURNAL), **choice)) == texts


@pytest.mark.parametrize(
    ("wanted", "texts"),
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
def test_rollouts_that_are_wanted_fit_all_that_is_said(written, wanted, texts):
    assert "".join(r["text"] for r in select_rollouts(written(JOURNAL), wanted)) == texts


def test_what_is_chosen_is_what_the_journal_holds(written):
    assert select_rollouts(written(JOURNAL)) == JOURNAL
    json.dumps(select_rollouts(written(JOURNAL)), allow_nan=False)


def test_a_torn_last_line_is_left_out(written):
    run = written(JOURNAL, end='{"step": 3, "te')
    assert len(select_rollouts(run)) == 5


def test_a_line_with_a_hole_is_left_out_at_the_end_and_refused_elsewhere(written):
    assert len(select_rollouts(written(JOURNAL, end='{"step": \0\0\0\n'))) == 5
    broken = written(JOURNAL, end='{"step": \0\n{"step": 4}\n')
    with pytest.raises(ConfigError, match=r"rollouts\.jsonl, line 6"):
        select_rollouts(broken)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"recipe\.json"):
        select_rollouts(tmp_path)


def test_a_run_without_rollouts_has_none(written):
    assert select_rollouts(written()) == []


def shown(rollouts) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    console.print(format_rollouts(rollouts))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_rollout_shows_prompt_answer_reward_by_part_advantage_and_step():
    said = shown([rollout(3, "four")])
    for fact in ("step 3", "abcdef01", "reward 1 (right 1, form 0.5)", "advantage +0.700"):
        assert fact in said
    for line in ("2 + 2 =", "four", "2 actions"):
        assert line in said
    assert max(map(len, said.splitlines())) <= 100


def test_a_failed_and_truncated_rollout_says_so():
    failed = rollout(reward="NaN", failed="it hung", advantage=None, truncated=True)
    said = shown([failed])
    for fact in ("reward nan", "not learned from", "it hung", "2 actions, cut off"):
        assert fact in said


def test_a_chat_is_shown_message_by_message():
    image = [{"type": "image", "url": "x.png"}]
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": image}]
    said = shown([rollout(prompt=chat)])
    assert "[system] Be brief." in said
    assert '[user] [{"type": "image", "url": "x.png"}]' in said


def test_hostile_text_is_shown_harmlessly():
    hostile = "[red]no[/red] \x1b[31mred\x1b]0;title\x07 \u202eback [/]"
    said = shown([rollout(text=hostile, prompt=hostile, task="\x1b[2J[b]", failed=hostile)])
    assert "\x1b" not in said.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "\u202e" not in said
    assert r"[red]no[/red] \x1b[31mred\x1b]0;title\x07 \u202eback [/]" in said


def test_no_rollout_is_said_in_words():
    assert shown([]) == "No rollout fits.\n"


def test_a_real_run_can_be_read(real_run):
    best = select_rollouts(real_run, best=3)
    assert [r["reward"] for r in best] == sorted((r["reward"] for r in best), reverse=True)
    assert len(select_rollouts(real_run, limit=1000)) == 96  # 3 steps x 4 prompts x 8 rollouts
    assert "+ 1 =" in shown(best)
