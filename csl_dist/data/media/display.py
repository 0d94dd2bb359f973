"""A decoded frame as players show it: turned or mirrored as the file asks, with square pixels.

A phone that was held upright writes frames that lie on their side and a matrix that puts them up;
DV, DVD and anamorphic files have pixels that are not square. What a model sees is what a person
sees.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.int32]

MOST_STRETCHED = 8
"""Pixels of a shape beyond this ratio are a damaged header, and taken for square."""
UNTURNED = np.array([1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30], dtype=np.int32)


def pixel_shape(stream: Any) -> Fraction:
    """Width of a pixel by its height, as the container or else the codec has it."""
    shape = Fraction(stream.sample_aspect_ratio or 1)
    return shape if Fraction(1, MOST_STRETCHED) <= shape <= MOST_STRETCHED else Fraction(1)


def shown_size(width: int, height: int, shape: Fraction) -> tuple[int, int]:
    """Width and height with square pixels; no side gets shorter."""
    return (round(width * shape), height) if shape >= 1 else (width, round(height / shape))


def display_matrix(frame: Any) -> Matrix:
    """What the file does to a frame before it is shown, as in the header of mp4 (3 by 3)."""
    found = frame.side_data.get("DISPLAYMATRIX")
    return UNTURNED if found is None else np.frombuffer(bytes(found), dtype=np.int32)


def shown(frame: Any, shape: Fraction) -> Pixels:
    """RGB pixels (height, width, 3) of a decoded frame whose pixels have a shape."""
    if shape == 1:
        pixels = frame.to_ndarray(format="rgb24")
    else:
        width, height = shown_size(frame.width, frame.height, shape)
        pixels = frame.to_ndarray(format="rgb24", width=width, height=height)
    return turned(pixels, display_matrix(frame))


def turned(pixels: Pixels, matrix: Matrix) -> Pixels:
    """Pixels turned by a display matrix, to the nearest quarter, and mirrored."""
    across_x, down_x, _, across_y, down_y, *_ = (int(number) for number in matrix)
    lies = abs(down_x) > abs(across_x)
    upright = pixels.swapaxes(0, 1) if lies else pixels
    to_right, to_bottom = (across_y, down_x) if lies else (across_x, down_y)
    return np.ascontiguousarray(
        upright[:: -1 if to_bottom < 0 else 1, :: -1 if to_right < 0 else 1]
    )
