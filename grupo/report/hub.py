"""Upload of an exported model to the Hugging Face hub."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
)
from huggingface_hub.utils import validate_repo_id

from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError

# the errors of the HTTP library, which depends on the version of huggingface_hub
_HTTP_ERRORS: Any = (OSError, *HfHubHTTPError.__bases__)


def check_upload(name: str, api: HfApi) -> None:
    """Raise `ConfigError` for an invalid name, or if the hub does not accept the access token.

    Args:
        name: Name of the repository, `user/model`.
        api: The hub.
    """
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"push_to_hub: {name!r}. Allowed: USER/MODEL. {error}") from error
    with _hub_errors("Nothing was exported"):
        api.whoami()


def upload_model(folder: Path, name: str, api: HfApi, *, private: bool = False) -> str:
    """Upload a folder to a repository, which is created if needed; returns its address.

    Args:
        folder: The exported model.
        name: Name of the repository, `user/model`.
        api: The hub.
        private: Create the repository as a private one; an existing one stays as it is.
    """
    with _hub_errors(f"The model is in {folder}, but was not uploaded"):
        url = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=url.repo_id,
            folder_path=folder,
            commit_message="Upload a model trained by grupo",
        )
    return str(url)


@contextmanager
def _hub_errors(message: str) -> Generator[None]:
    """Turn errors of the hub and of the connection to it into one message."""
    try:
        yield
    except LocalTokenNotFoundError as error:
        raise ConfigError(
            f"push_to_hub: {message}: there is no access token. Log in with `hf auth login`, or set"
            " HF_TOKEN."
        ) from error
    except _HTTP_ERRORS as error:
        cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CommandError(f"push_to_hub: {message}: {cause}") from error
