"""Processors of transformers whose part for videos is missing, because torchvision is."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from transformers import ImageProcessingMixin, processing_utils
from transformers.utils.import_utils import is_torchvision_available

VIDEO = "video_processor"


class MissingVideoProcessor(ImageProcessingMixin):
    """Stands for the video processor, which needs torchvision: frames are read as images."""

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> "MissingVideoProcessor":
        """The processor, whatever the model."""
        return cls()


@contextmanager
def without_video_processors() -> Generator[None]:
    """Context manager in which processors load without torchvision, and cannot read videos."""
    if is_torchvision_available():
        yield
        return
    classes: Any = processing_utils.MODALITY_TO_BASE_CLASS_MAPPING
    loaders: Any = processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING
    video_class = classes[VIDEO]
    classes[VIDEO] = "ImageProcessingMixin"
    replaced: Any = _Loaders(loaders)
    processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING = replaced
    try:
        yield
    finally:
        classes[VIDEO] = video_class
        processing_utils.MODALITY_TO_AUTOPROCESSOR_MAPPING = loaders


class _Loaders:
    """The classes that load the parts of a processor, with another one for videos."""

    def __init__(self, loaders: Any) -> None:
        self.loaders = loaders

    def __getitem__(self, name: str) -> Any:
        return MissingVideoProcessor if name == VIDEO else self.loaders[name]

    def keys(self) -> Any:
        """Names of the parts."""
        return self.loaders.keys()

    def __contains__(self, name: object) -> bool:
        return name in self.loaders
