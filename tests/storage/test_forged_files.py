"""Forged files in a folder of checkpoints are skipped with a note."""

import hashlib
import json
import shutil

import pytest

from grupo.storage import checkpoint, manifest
from tests.helpers.saved_states import save


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "../run/step-00000001 0\n",
        "/etc/passwd 0\n",
        "step-1 0\n",
        "\0" * 90,
        "step-" + "9" * 5000,
    ],
)
def test_pointer_to_another_folder_is_not_followed(text, tmp_path):
    save(tmp_path, 1)
    (tmp_path / "latest").write_text(text)
    loaded = checkpoint.load_newest(tmp_path)
    assert loaded.step == 1
    assert loaded.skipped_checkpoints == (
        "latest: torn, or names no checkpoint; step-00000001 is used instead",
    )


def with_checksum(body) -> str:
    return manifest._with_checksum(body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"format": NaN}',
        with_checksum({"format": 7}),
        with_checksum({"format": 7, "step": 2, "files": 3}),
        with_checksum({"format": 7, "step": 2, "files": {"data.json": 3}}),
        with_checksum({"format": 7, "step": 2, "files": {"data.json": {"size": 0}}}),
        with_checksum({"format": 7, "step": 2, "files": {}}),
        with_checksum({"format": 7, "step": 2, "files": {"data.json": {"size": "0", "sha256": 1}}}),
        with_checksum(
            {"format": 7, "step": "2", "files": {"../data.json": {"size": 0, "sha256": ""}}}
        ),
        with_checksum({"format": 7, "step": 2, "files": {}, "more": 1}),
    ],
)
def test_forged_manifest_is_skipped(text, tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    (path / "manifest.json").write_text(text)
    loaded = checkpoint.load_newest(tmp_path)
    assert loaded.step == 1
    assert f"{path.name}/" in loaded.skipped_checkpoints[-1]


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, b"\x02" + b"\0" * 7 + b"{}rest", b"garbage!" * 9]
)
def test_forged_file_with_a_right_checksum_is_skipped(content, tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    for name in ("weights.safetensors", "data.json"):
        forged = shutil.copytree(path, tmp_path / "step-00000003", dirs_exist_ok=True)
        (forged / name).write_bytes(content)
        digest = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        body = json.loads((forged / "manifest.json").read_text())
        body = {"format": 7, "step": 3, "files": {**body["files"], name: digest}}
        (forged / "manifest.json").write_text(with_checksum(body))
        (tmp_path / "latest").unlink(missing_ok=True)
        loaded = checkpoint.load_newest(tmp_path)
        assert loaded.step == 2
        assert loaded.skipped_checkpoints[1].startswith("step-00000003: ")
        shutil.rmtree(forged)
