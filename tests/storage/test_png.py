import io

import numpy as np
import torch
from PIL import Image

from grupo.storage.png import encode_png


def test_a_png_holds_the_picture_bit_for_bit():
    picture = torch.arange(3 * 4 * 5, dtype=torch.uint8).reshape(3, 4, 5)
    with Image.open(io.BytesIO(encode_png(picture))) as found:
        assert (found.mode, found.size) == ("RGB", (5, 4))  # width, height
        assert np.array_equal(np.asarray(found), picture.permute(1, 2, 0).numpy())
