"""Contents that are found by the keys of their tokens."""

import pytest

from grupo.core.media import Image
from grupo.models.multimodal.media_tokens import (
    KEY_BITS,
    media_key,
    media_of_key,
    register_media,
)
from grupo.util.errors import ConfigError


def content() -> Image:
    return Image(b"a picture", "image/png")


@pytest.mark.parametrize("first_ends", [True, False])
def test_a_content_is_known_as_long_as_one_of_its_equal_objects_exists(first_ends):
    objects = [content(), content()]
    key = media_key(objects[0].digest)
    register_media(objects)
    register_media(objects)
    del objects[0 if first_ends else 1]
    assert media_of_key(key) is objects[0]
    objects.clear()
    with pytest.raises(LookupError):
        media_of_key(key)


def test_another_content_with_the_same_key_is_refused():
    one, other = content(), Image(b"another picture", "image/png")
    vars(other)["digest"] = f"{int(one.digest, 16) + (1 << KEY_BITS):032x}"
    register_media([one])
    with pytest.raises(ConfigError, match="have the same key"):
        register_media([other])
