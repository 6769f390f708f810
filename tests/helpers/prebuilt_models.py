"""A toy model specification that points to an existing folder."""

from pathlib import Path

from grupo.core.component import component


@component
class PrebuiltModel:
    """A toy model specification without a way to train it."""

    folder: str

    @property
    def model_dir(self) -> Path:
        return Path(self.folder)
