"""A folder of numbered pictures as a video.

A picture's number is its place: `000001.png` at 10 fps is shown 0.1 s after `000000.png`. Numbers
that start at 0 or 1 start at second 0; a first number above that leaves out what came before.
"""

import re
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from csl_dist.data.content import Contents
from csl_dist.data.media.display import Pixels
from csl_dist.errors import DataError, StorageError
from csl_dist.storage.files import open_file, place
from csl_dist.types import FloatArray

SUFFIXES = (".jpg", ".jpeg", ".png")


class FrameFolder:
    """Pictures in a folder, in the order of their numbers."""

    def __init__(self, path: str, fps: float):
        self.path = path
        self._fps = fps

    def __repr__(self) -> str:
        return f"FrameFolder({self.path!r})"

    def times(self) -> FloatArray:
        """Seconds of all pictures, ascending."""
        return np.array(sorted(self.pictures()))

    def decode(self, times_T: FloatArray) -> Iterator[Pixels | DataError]:
        """RGB pictures (height, width, 3) at the given times; an error for one that is broken."""
        pictures = self.pictures()
        for seconds in times_T:
            path = pictures[float(seconds)]
            try:
                yield np.asarray(read_picture(path))
            except (OSError, StorageError, UnidentifiedImageError) as error:
                yield DataError(
                    f"{path}, at {seconds:.2f} s, can't be read ({error}); replace it, or set "
                    "features.on_bad_frame: repeat_last"
                )

    def content(self, contents: Contents) -> str:
        """Changes with any picture of the folder."""
        return contents.of_folder(self.path)

    def pictures(self) -> dict[float, str]:
        """Path of each picture by its time."""
        try:
            paths = [
                path
                for path in place(self.path).iterdir()
                if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
            ]
        except OSError as error:
            raise DataError(f"can't read the frame folder {self.path}: {error.strerror}") from error
        numbers: dict[int, str] = {}
        for path in paths:
            found = re.findall(r"\d+", path.stem)
            if not found:
                raise DataError(f"{path} has no frame number in its name; name frames 000001.jpg")
            number = int(found[-1])
            if number in numbers:
                raise DataError(f"{path} and {numbers[number]} have the same frame number")
            numbers[number] = str(path)
        if not numbers:
            raise DataError(f"{self.path} holds no .jpg or .png frames")
        first = min(numbers) if min(numbers) <= 1 else 0
        if self._fps <= 0:
            raise DataError(f"{self.path}: {self._fps:g} pictures a second is no rate")
        return {(number - first) / self._fps: path for number, path in numbers.items()}


def read_picture(path: str) -> Image.Image:
    """A picture in RGB, turned as its camera noted (EXIF)."""
    with open_file(path) as file, Image.open(file) as picture:
        return ImageOps.exif_transpose(picture).convert("RGB")
