"""Images, videos and audio of a run: references in JSON, and files named by their content."""

import gc
import json

import numpy as np
import pytest

from grupo.core.media import Audio, Image, Video
from grupo.core.types import Response, Rollout
from grupo.storage import checkpoint, rollout_json, strict_json
from grupo.storage.checkpoint import CorruptRun
from grupo.storage.journal import Journal
from grupo.storage.media_files import MediaFiles, check_file, data_url, inline, reference, restored
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import flip_bit

PICTURE = Image.from_pixels(np.full((2, 2, 3), 7, np.uint8))
CLIP = Video.from_frames(np.zeros((2, 2, 2, 3), np.uint8), 2.0)
SOUND = Audio.from_samples(np.array([0.0, 0.5]), 100)
ALL = (PICTURE, CLIP, SOUND)
PROMPT = ({"role": "user", "content": [{"type": media.kind, media.kind: media} for media in ALL]},)


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "media").iterdir()}


def test_a_line_of_a_journal_has_references_to_files(tmp_path):
    journal = Journal(tmp_path / "rollouts.jsonl")
    journal.append({"prompt": PROMPT}, {"prompt": PROMPT})
    first, second = (json.loads(line) for line in journal.path.read_text().splitlines())
    parts = first["prompt"][0]["content"]
    assert first == second
    assert [part[media.kind] for part, media in zip(parts, ALL, strict=True)] == [
        {"media": kind, "kind": media.kind, "digest": media.digest}
        for media, kind in zip(ALL, ("image/png", "image/apng", "audio/wav"), strict=True)
    ]
    assert files(tmp_path) == {
        f"{media.digest}.{extension}": media.data
        for media, extension in zip(ALL, ("png", "apng", "wav"), strict=True)
    }


def test_a_file_is_durable_before_the_line_that_names_it(tmp_path):
    calls = []

    def syscall(call, /, *args, **kwargs):
        calls.append((call.__name__, args[0]))
        return call(*args, **kwargs)

    Journal(tmp_path / "rollouts.jsonl", syscall).append({"image": PICTURE})
    names = [name for name, _ in calls]
    last_write = len(names) - 1 - names[::-1].index("write")
    renamed = names.index("replace")
    assert names[:renamed].count("fsync") >= 2  # the folder and the file
    assert "fsync" in names[renamed:last_write]  # its name


def test_an_existing_file_is_not_written_again(tmp_path):
    MediaFiles(tmp_path / "media").write(PICTURE)
    (path,) = (tmp_path / "media").iterdir()
    written_at = path.stat().st_mtime_ns
    MediaFiles(tmp_path / "media").write(PICTURE)
    assert path.stat().st_mtime_ns == written_at
    assert len(files(tmp_path)) == 1


def test_a_checkpoint_restores_the_same_objects(tmp_path):
    rollout = Rollout(((PROMPT, Response((1,), (-0.5,), observation=(3,), text="a")),), 1.0)
    data = {"replays": [rollout_json.to_data(rollout)], "media": list(ALL)}
    checkpoint.save(tmp_path / "checkpoints", 1, {}, data)
    text = next((tmp_path / "checkpoints").glob("*/data.json")).read_text()
    assert all(media.digest in text for media in ALL)
    loaded = checkpoint.load_newest(tmp_path / "checkpoints").data
    assert rollout_json.from_data(loaded["replays"][0]) == rollout
    parts = loaded["replays"][0]["turns"][0][0][0]["content"]
    assert all(part[m.kind] is m for part, m in zip(parts, loaded["media"], strict=True))


@pytest.mark.parametrize("damage", fast_cases(1, ["missing", "changed"]))
def test_a_checkpoint_without_its_files_is_not_used(tmp_path, damage):
    picture = Image.from_pixels(np.full((2, 2, 3), 8, np.uint8))
    checkpoint.save(tmp_path / "checkpoints", 1, {}, {"image": picture})
    (path,) = (tmp_path / "media").iterdir()
    del picture
    gc.collect()
    path.unlink() if damage == "missing" else flip_bit(path)
    with pytest.raises(CorruptRun, match=rf"{path.name}: (No such file|its bytes are not)"):
        checkpoint.load_newest(tmp_path / "checkpoints")


def test_json_without_a_folder_refuses_media():
    with pytest.raises(ConfigError, match="/image is a Image, which JSON cannot hold"):
        strict_json.to_json({"image": PICTURE})


@pytest.mark.parametrize("media", ALL)
def test_an_inline_reference_is_complete(media):
    plain = json.loads(json.dumps(inline(media)))
    assert restored(plain, lambda value: b"") == media
    with pytest.raises(ValueError, match="its bytes are not those that were written"):
        restored(reference(media), lambda value: b"other")


def test_the_check_of_a_file_finds_a_changed_bit(tmp_path):
    MediaFiles(tmp_path).write(SOUND)
    (path,) = tmp_path.iterdir()
    check_file(path)
    flip_bit(path)
    with pytest.raises(ValueError, match="its bytes are not those that were written"):
        check_file(path)


def test_a_link_to_a_file_of_another_folder_is_not_shown(tmp_path):
    digest = PICTURE.digest
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    Journal(run / "rollouts.jsonl").append({"prompt": PROMPT})
    assert data_url(run, digest) == PICTURE.data_url
    (path,) = (run / "media").glob(f"{digest}.*")
    elsewhere.write_text("secret")
    path.unlink()
    path.symlink_to(elsewhere)
    assert data_url(run, digest) == ""
