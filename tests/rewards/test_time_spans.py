"""Time spans of answers against reference spans."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.time_spans import TimeSpanFormat, TimeSpanIoU, temporal_iou, time_span
from grupo.util.errors import ConfigError

TASK = Task("k", "?", (4, 8))


def answer(start, end):
    return f'<answer>{{"start_time": {start}, "end_time": {end}}}</answer>'


def score(reward, text, task=TASK):
    return reward.score(task, Rollout((("?", Response((), (), text=text)),)))


def test_the_iou_is_the_shared_time_over_the_hull():
    assert temporal_iou((2, 6), (4, 8)) == pytest.approx(2 / 6)
    assert temporal_iou((4, 8), (2, 6)) == pytest.approx(2 / 6)
    assert temporal_iou((0, 1), (2, 3)) == temporal_iou((0, 2), (2, 3)) == 0.0
    assert temporal_iou((6, 2), (2, 6)) == temporal_iou((3, 3), (3, 3)) == 0.0


def test_the_unit_of_time_cancels():
    assert temporal_iou((0.2, 0.6), (0.4, 0.8)) == pytest.approx(temporal_iou((2, 6), (4, 8)))


def test_half_the_iou_and_half_the_format_add_up():
    text = "<think>it enters late</think>" + answer('"2"', '"6"')
    total = 0.5 * score(TimeSpanIoU(), text) + 0.5 * score(TimeSpanFormat(), text)
    assert total == pytest.approx(2 / 3)


def test_numbers_without_quotes_have_an_iou_but_not_the_format():
    text = "<think></think>" + answer(4, 8.0)
    assert score(TimeSpanIoU(), text) == 1.0
    assert score(TimeSpanFormat(), text) == 0.0


def test_answers_that_are_no_span_score_zero():
    bad = ('"a"', "[]", "null", '"nan"', '"inf"', "true]", '"', "9" * 400)
    for text in ("", "4 to 8", "<answer>[4, 8]</answer>", *(answer(x, '"8"') for x in bad)):
        assert score(TimeSpanIoU(), text) == 0.0
        assert score(TimeSpanFormat(), text) == 0.0


def test_the_format_is_that_of_the_whole_text():
    text = "<think></think>" + answer('"4"', '"8.5"')
    assert score(TimeSpanFormat(), text) == 1.0
    for changed in (text + ".", text.removeprefix("<think></think>"), text.replace("8.5", "-8")):
        assert score(TimeSpanFormat(), changed) == 0.0


def test_a_task_without_a_span_is_refused():
    assert time_span({"start_time": "1", "end_time": "2"}) == (1.0, 2.0)
    for reference in ("red", (8, 4), (1,), None):
        with pytest.raises(ConfigError, match=r"Allowed: \(start, end\)"):
            TimeSpanIoU().validate_tasks([Task("k", "?", reference)])
