"""What is grown before a comparison begins."""

from pathlib import Path

from grupo.core.component import component


@component
class Pot:
    """Where a model would be."""

    place: str

    @property
    def home(self) -> Path:
        return Path(self.place)
