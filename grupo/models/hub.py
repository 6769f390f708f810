"""Whether the hub can be reached, asked once: seconds instead of minutes of repeated requests."""

import ssl
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from grupo.models.pretrained.smollm2 import NAME
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON
from grupo.util.spelling import nearest

TIMEOUT_SECONDS = 5.0
INDEX_FILES = ("config.json", "model_index.json", "adapter_config.json")
ALLOWED = "a model's folder, a run, a .gguf file, or a name on the hub"


def check_hub_answers(name: str) -> None:
    """Raise `ConfigError` for a name on the hub that cannot be loaded, since no hub answers.

    `huggingface_hub` repeats each of its requests for half a minute, and a model has several files.
    A folder passes, and so does a model in the hub's cache.

    Args:
        name: Folder or hub name of a model.
    """
    if Path(name).exists() or _is_cached_or_no_name(name):
        return
    if problem := _problem_of_hub():
        close = nearest(name, _local_models(Path(name)))
        correction = f"Did you mean {close!r}? " if close else ""
        raise ConfigError(
            f"model: {name!r} is no folder, and the hub has not been reached: {problem}."
            f" {correction}Allowed: {ALLOWED}."
        )


def _is_cached_or_no_name(name: str) -> bool:
    """True for a model in the hub's cache, and for a text that can be no name on the hub."""
    try:
        return any(isinstance(try_to_load_from_cache(name, x), str) for x in INDEX_FILES)
    except HFValidationError:
        return True


def _problem_of_hub() -> str:
    """Why the hub does not answer; empty if it does, whatever the answer is."""
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        with urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=TIMEOUT_SECONDS):
            return ""
    except HTTPError:
        return ""
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):  # huggingface_hub has certificates of its own
            return ""
        return f"{constants.ENDPOINT} does not answer ({reason})"


def _local_models(path: Path) -> list[str]:
    """Models, runs and GGUF files beside a path, as they would be written in its place."""
    if not path.parent.is_dir():
        return [NAME]
    entries = sorted(path.parent.iterdir())
    models = [x for x in entries if x.suffix == ".gguf" or _is_model_or_run(x)]
    return [NAME, *map(str, models)]


def _is_model_or_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (*INDEX_FILES, RECIPE_JSON))
