"""Rows with images, videos and audio, as TRL and verl write them."""

import json

import numpy as np
import pyarrow
import pytest
from datasets import Dataset, Features, List, Value
from datasets import Image as ImageFeature
from PIL import Image as PillowImage
from pyarrow import parquet

from grupo.core.media import Audio, Image, Video, media_of
from grupo.tasks.base import task_key
from grupo.tasks.columns import Columns, task_from_row
from grupo.tasks.conversations import task_demonstration
from grupo.tasks.dataset import DatasetTasks
from grupo.tasks.in_memory import InMemoryTasks
from grupo.tasks.preference_rows import answers_in
from grupo.util.errors import ConfigError


def picture(shade):
    return Image.from_pixels(np.full((2, 2, 3), shade, np.uint8))


RED, BLUE = picture(1), picture(2)
SOUND = Audio.from_samples(np.array([0.0, 0.5]), 100)
CLIP = Video.from_frames(np.zeros((2, 2, 2, 3), np.uint8), 2.0)


def text(words):
    return {"type": "text", "text": words}


def image(media):
    return {"type": "image", "image": media}


def user(content):
    return {"role": "user", "content": content}


def task(row):
    return task_from_row(row, Columns(), "row 1")


def test_images_without_places_precede_the_first_text_of_the_user():
    """As TRL's trainers do."""
    chat = [{"role": "system", "content": "Be brief."}, user("Which?"), user("Well?")]
    prompt = task({"prompt": chat, "images": [RED, BLUE]}).prompt
    assert prompt == (chat[0], user([image(RED), image(BLUE), text("Which?")]), chat[2])


def test_a_plain_prompt_with_an_image_becomes_a_message():
    assert task({"prompt": "Which?", "image": RED}).prompt == (user([image(RED), text("Which?")]),)


def test_places_are_filled_in_order():
    content = [text("First"), {"type": "image"}, text("then"), {"type": "image", "text": None}]
    row = {"prompt": [user(content)], "images": [RED, BLUE]}
    expected = [text("First"), image(RED), text("then"), image(BLUE)]
    assert task(row).prompt == (user(expected),)


def test_marks_of_verl_are_places_also_of_videos_and_audio():
    row = {
        "prompt": [user("<image>See <video> and <audio>!")],
        "images": [{"bytes": RED.data, "path": None}],
        "videos": [{"video": CLIP}],
        "audios": [SOUND],
        "reward_model": {"ground_truth": "4"},
        "data_source": "geo",
    }
    expected = [
        image(RED),
        text("See "),
        {"type": "video", "video": CLIP},
        text(" and "),
        {"type": "audio", "audio": SOUND},
        text("!"),
    ]
    assert task(row).prompt == (user(expected),)
    assert (task(row).reference_answer, task(row).source) == ("4", "geo")


def test_marks_stay_text_without_media():
    assert task({"prompt": "Write <image> in HTML."}).prompt == "Write <image> in HTML."
    chat = [user("<image>")]
    assert task({"prompt": chat, "images": None}).prompt == tuple(chat)


def test_a_part_with_its_content_needs_no_column():
    url = {"type": "image_url", "image_url": {"url": _data_url(RED)}}
    clip = {"type": "video", "video": [RED, RED], "fps": 2.0}
    prompt = task({"prompt": [user([url, clip, text("Which?")])]}).prompt
    first, second = media_of(prompt)
    assert first == RED
    assert (second.frames() == 1).all()
    assert second.fps == 2.0


def _data_url(media):
    import base64

    return f"data:image/png;base64,{base64.b64encode(media.data).decode()}"


def test_reward_functions_find_the_media_in_their_columns():
    columns = task({"prompt": "?", "images": [{"bytes": RED.data}], "audio": SOUND}).columns
    assert columns == {"images": [RED], "audio": SOUND}


def test_columns_with_no_media_change_nothing():
    row = {"prompt": "?", "images": [], "video": None}
    assert task(row).prompt == "?"
    assert task(row).columns == {"images": [], "video": None}


def test_a_clip_may_be_a_list_of_frames():
    (media,) = media_of(task({"prompt": "?", "video": [RED, BLUE]}).prompt)
    assert media.frames()[:, 0, 0, 0].tolist() == [1, 2]


def test_the_key_of_a_task_depends_on_its_pictures():
    prompts = [task({"prompt": "Which?", "image": x}).prompt for x in (RED, BLUE, RED)]
    keys = [task_key(prompt) for prompt in prompts]
    assert keys[0] == keys[2] != keys[1]


def test_a_demonstration_in_messages_has_the_pictures():
    row = {"messages": [user("Which?"), {"role": "assistant", "content": "Red"}], "image": RED}
    ((observation, answer),) = task_demonstration(task(row)).turns
    assert observation == (user([image(RED), text("Which?")]),)
    assert answer["content"] == "Red"


def test_preferences_share_their_prompt_with_its_pictures():
    chats = {
        name: [user("Which?"), {"role": "assistant", "content": answer}]
        for name, answer in (("chosen", "Red"), ("rejected", "Blue"))
    }
    pair = task({**chats, "images": [RED]})
    assert pair.prompt == (user([image(RED), text("Which?")]),)
    ((observation, answer),) = answers_in(pair, "rejected")[0].turns
    assert (observation, answer["content"]) == (pair.prompt, "Blue")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"prompt": [user([{"type": "image"}, text("?")])], "images": [RED, BLUE]},
            "it has 1 place for image, and the row has 2 in the columns images and image",
        ),
        ({"prompt": [user([{"type": "image"}])]}, "it has 1 place for image, and the row has 0"),
        ({"prompt": "<video><video>", "videos": [CLIP]}, "it has 2 places for video"),
        ({"prompt": "?", "images": [b"text"]}, "'images': a file of 4 bytes"),
        ({"prompt": "?", "video": []}, "'video': a video without frames"),
        ({"prompt": "?", "image": "http://a/b.png"}, "'image': .* nothing is downloaded"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row, problem):
    with pytest.raises(ConfigError, match=f"^row 1, column .*{problem}.*[.] Allowed: "):
        task(row)


def test_paths_begin_in_the_folder_of_the_file(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "red.png").write_bytes(RED.data)
    row = {"prompt": "Which?", "images": ["pictures/red.png"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (found,) = DatasetTasks(str(tmp_path / "rows.jsonl")).load()
    assert list(media_of(found.prompt)) == [RED]


def test_a_missing_file_is_named_with_its_line(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"prompt": "Which?", "images": ["red.png"]}))
    with pytest.raises(ConfigError, match=r"rows.jsonl, line 1, column 'images': .*red.png"):
        DatasetTasks(str(file)).load()


def test_parquet_rows_of_verl_are_read(tmp_path):
    row = {
        "prompt": [{"role": "user", "content": "<image>Which?"}],
        "images": [{"bytes": RED.data, "path": None}],
    }
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "rows.parquet")
    (found,) = DatasetTasks(str(tmp_path / "rows.parquet")).load()
    assert found.prompt == (user([image(RED), text("Which?")]),)


def _jpeg(tmp_path):
    file = tmp_path / "a.jpg"
    PillowImage.fromarray(RED.pixels()).save(file)
    return file


@pytest.mark.parametrize("nested", [False, True])
def test_files_of_data_sets_are_kept_as_they_are(tmp_path, nested):
    file = str(_jpeg(tmp_path))
    feature = List(ImageFeature()) if nested else ImageFeature()
    name = "images" if nested else "image"
    features = Features({"prompt": Value("string"), name: feature})
    rows = Dataset.from_dict({"prompt": ["?"], name: [[file] if nested else file]}, features)
    (found,) = InMemoryTasks(rows).load()
    assert [x.data for x in media_of(found.prompt)] == [(tmp_path / "a.jpg").read_bytes()]
    rows.save_to_disk(tmp_path / "saved")
    (again,) = DatasetTasks(str(tmp_path / "saved")).load()
    assert again.key == found.key


def test_decoded_images_of_a_list_of_dicts_are_read():
    rows = [{"prompt": "?", "images": [PillowImage.fromarray(BLUE.pixels())]}]
    (found,) = InMemoryTasks(rows).load()
    assert list(media_of(found.prompt)) == [BLUE]
