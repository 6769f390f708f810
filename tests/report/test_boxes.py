"""Boxes of answers, drawn on the picture of the prompt: report, notebook and grid."""

import json

import numpy as np
import pytest
from PIL import Image as PillowImage

from grupo.core.media import Image
from grupo.core.types import Group, Response, Rollout, Task
from grupo.report.html.build import write_html_report
from grupo.report.picture_answers import PICTURE_SIZE, REFERENCE_COLOUR, save_answer_grid
from grupo.report.run_html import run_html
from grupo.storage.journal import Journal
from tests.helpers.written_runs import response, rollout, write_run

PICTURE = Image.from_pixels(np.full((8, 12, 3), 200, np.uint8))
CONTENT = [{"type": "image", "image": PICTURE}, {"type": "text", "text": "Where is it?"}]
PROMPT = [{"role": "user", "content": CONTENT}]
ANSWERS = ("at [1, 2, 7, 6]", "nowhere", "[1, 2, 3], [9, 5, 3, 7]")  # one box in all


@pytest.fixture
def run(tmp_path):
    """A run with three answers to a question for a box, of which one has a box."""
    folder = write_run(tmp_path / "run", 1, tasks=("one",))
    (folder / "summary.json").unlink()
    records = [
        rollout(1, "one", text, float(i), prompt=PROMPT, reference_answer="[2, 2, 8, 6]")
        for i, text in enumerate(ANSWERS)
    ]
    responses = [{"step": 1, "group": 0, "responses": [response([text])]} for text in ANSWERS]
    for name, lines in (("rollouts", records), ("responses", responses)):
        path = folder / f"{name}.jsonl"
        path.unlink()
        Journal(path).append(*lines)
    return folder


def test_a_notebook_shows_the_boxes_of_answers_and_of_the_reference_answer(run):
    page = run_html(run)
    assert page.count("<rect") == 2
    assert 'viewBox="0 0 12 8"' in page
    assert '<rect x="1" y="2" width="6" height="4"' in page  # the answer's
    assert '<rect x="2" y="2" width="6" height="4"' in page  # the reference answer's
    assert page.count("stroke-dasharray") == 1


def test_the_report_holds_the_picture_once_though_several_answers_show_it(run):
    page = write_html_report([run], run.parent / "page.html").read_text()
    assert page.count(PICTURE.data_url) == 1


def test_the_grid_draws_boxes_in_the_colours_of_their_lines(tmp_path):
    task = Task("k", tuple(PROMPT), "[3, 2, 9, 6]")
    turns = ((task.prompt, Response((1,), (-0.5,), text="[0, 0, 6, 4]")),)
    group = Group(task, (Rollout(turns, reward=0.25),))
    save_answer_grid({"after": [group]}, tmp_path / "grid.png")
    grid = np.asarray(PillowImage.open(tmp_path / "grid.png"))[:PICTURE_SIZE, :PICTURE_SIZE]
    reference = tuple(bytes.fromhex(REFERENCE_COLOUR[1:]))
    row, column = np.nonzero((grid == reference).all(-1))
    scale = np.array([PICTURE_SIZE / 12, PICTURE_SIZE / 8])
    corner = np.array([column.min(), row.min()]) / scale
    assert corner == pytest.approx([3, 2], abs=0.1)
    assert json.loads(str(task.reference_answer))[2:] == pytest.approx(
        np.array([column.max(), row.max()]) / scale, abs=0.1
    )
