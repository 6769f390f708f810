"""Pictures, video and sound where people look: terminal, notebook, report, server, Parquet."""

import base64
import json
import urllib.error
import urllib.request
from io import StringIO

import numpy as np
import pyarrow.parquet
import pytest
from rich.console import Console

from grupo.core.group_html import group_html
from grupo.core.media import Audio, Image, Video
from grupo.core.types import Group, Response, Rollout, Task
from grupo.report.html.build import write_html_report
from grupo.report.html.journal_index import prompt_preview
from grupo.report.parquet import write_parquet
from grupo.report.rollouts import format_rollouts, select_rollouts
from grupo.report.run_html import run_html
from grupo.storage.journal import Journal
from tests.helpers.report_servers import served
from tests.helpers.written_runs import response, rollout, write_run

PICTURE = Image.from_pixels(np.full((8, 12, 3), 200, np.uint8))
FRAMES = np.stack([np.full((6, 10, 3), shade, np.uint8) for shade in (0, 250)])
CLIP = Video.from_frames(FRAMES, 2.0)
SOUND = Audio.from_samples(np.sin(np.arange(4000) / 10.0) / 2.0, 8000)
UNUSED = Image.from_pixels(np.zeros((1, 1, 3), np.uint8))


def user(*parts):
    content = [x if isinstance(x, dict) else {"type": x.kind, x.kind: x} for x in parts]
    return {"role": "user", "content": content}


PROMPT = [user(PICTURE, {"type": "text", "text": "Which colour?"}, SOUND)]
LATER = [user(CLIP, {"type": "text", "text": "Look again."})]


@pytest.fixture
def run(tmp_path):
    """A run with pictures, video and sound in the prompt and in an observation."""
    folder = write_run(tmp_path / "run", 1, tasks=("one",))
    turns = [{"text": "red"}, {"observation": LATER, "text": "blue"}]
    records = [
        rollout(1, "one", f"answer {i}", float(i), prompt=PROMPT, turns=turns) for i in range(2)
    ]
    responses = [response(["red"]), response(["blue"], observation=LATER)]
    for name, lines in (
        ("rollouts", records),
        ("responses", [{"step": 1, "group": 0, "responses": responses}] * 2),
    ):
        path = folder / f"{name}.jsonl"
        path.unlink()
        Journal(path).append(*lines)
    Journal(folder / "other.jsonl").append({"image": UNUSED})
    return folder


def test_the_terminal_names_the_files(run):
    console = Console(file=StringIO(), width=200)
    console.print(format_rollouts(select_rollouts(run)[:1]))
    shown = console.file.getvalue()
    for media, suffix in ((PICTURE, "png"), (SOUND, "wav"), (CLIP, "apng")):
        assert f"[{media.kind} media/{media.digest}.{suffix}]" in shown
    assert "Which colour?" in shown


def test_a_notebook_shows_the_media_of_a_group_and_of_a_run(run):
    (run / "summary.json").unlink()
    task = Task("k", tuple(PROMPT))
    shown = group_html(Group(task, (Rollout(((task.prompt, Response((1,), (0.0,))),), 1.0),)))
    for html in (shown, run_html(run)):
        assert f'src="{PICTURE.data_url}"' in html
        assert f'<audio controls src="{SOUND.data_url}">' in html
        assert "Which colour?" in html


def test_the_report_embeds_each_file_once_and_no_others(run):
    page = write_html_report([run], run.parent / "page.html").read_text()
    assert [page.count(x.data_url) for x in (PICTURE, CLIP, SOUND, UNUSED)] == [1, 1, 1, 0]


def test_the_server_sends_a_file_by_its_digest(run):
    with served(run) as server:
        with urllib.request.urlopen(f"{server.url}run/0/media/{CLIP.digest}") as answer:
            assert json.load(answer) == {"url": CLIP.data_url}
        for digest in ("0" * 32, "..%2Frecipe", "*"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{server.url}run/0/media/{digest}")


def test_parquet_has_the_files_of_each_rollout(run):
    write_parquet(run, run.parent / "rollouts.parquet")
    first, second = pyarrow.parquet.read_table(run.parent / "rollouts.parquet").to_pylist()
    assert first["media"] == second["media"]
    assert [x["bytes"] for x in first["media"]] == [PICTURE.data, SOUND.data, CLIP.data]
    assert json.loads(first["prompt"])[0]["content"][0]["image"]["digest"] == PICTURE.digest


def test_a_run_without_media_has_no_such_column(tmp_path):
    write_parquet(write_run(tmp_path / "run", 1), tmp_path / "rollouts.parquet")
    assert "media" not in pyarrow.parquet.read_schema(tmp_path / "rollouts.parquet").names


def test_the_preview_of_a_prompt_is_its_text():
    assert prompt_preview(PROMPT) == "<image>Which colour?<audio>"


def test_an_address_holds_the_bytes():
    assert base64.b64decode(PICTURE.data_url.removeprefix("data:image/png;base64,")) == PICTURE.data
