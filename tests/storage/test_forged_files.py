"""What somebody else wrote into the folder of checkpoints is passed over, and said."""

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
def test_a_pointer_elsewhere_is_not_followed(text, tmp_path):
    save(tmp_path, 1)
    (tmp_path / "latest").write_text(text)
    found = checkpoint.load(tmp_path)
    assert found.step == 1
    assert found.notes == ("latest: torn, or names no checkpoint; step-00000001 is used instead",)


def sealed(body) -> str:
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
        sealed({"format": 2}),
        sealed({"format": 2, "step": 2, "files": 3}),
        sealed({"format": 2, "step": 2, "files": {"data.json": 3}}),
        sealed({"format": 2, "step": 2, "files": {"data.json": {"size": 0}}}),
        sealed({"format": 2, "step": 2, "files": {}}),
        sealed({"format": 2, "step": 2, "files": {"data.json": {"size": "0", "sha256": 1}}}),
        sealed({"format": 2, "step": "2", "files": {"../data.json": {"size": 0, "sha256": ""}}}),
        sealed({"format": 2, "step": 2, "files": {}, "more": 1}),
    ],
)
def test_a_forged_manifest_is_passed_over(text, tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    (path / "manifest.json").write_text(text)
    found = checkpoint.load(tmp_path)
    assert found.step == 1
    assert f"{path.name}/" in found.notes[-1]


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, b"\x02" + b"\0" * 7 + b"{}rest", b"garbage!" * 9]
)
def test_a_forged_file_with_the_right_checksum_is_passed_over(content, tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    for name in ("weights.safetensors", "data.json"):
        forged = shutil.copytree(path, tmp_path / "step-00000003", dirs_exist_ok=True)
        (forged / name).write_bytes(content)
        stamp = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        body = json.loads((forged / "manifest.json").read_text())
        body = {"format": 2, "step": 3, "files": {**body["files"], name: stamp}}
        (forged / "manifest.json").write_text(sealed(body))
        (tmp_path / "latest").unlink(missing_ok=True)
        found = checkpoint.load(tmp_path)
        assert found.step == 2
        assert found.notes[1].startswith("step-00000003: ")
        shutil.rmtree(forged)
