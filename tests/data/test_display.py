"""Frames as players show them: turned, mirrored and stretched; the same by any decoder."""

import io
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from builder import write_video
from PIL import Image

from csl_dist.data.media.display import Pixels
from csl_dist.data.media.frames import FrameFolder
from csl_dist.data.media.pixels import whole_frames
from csl_dist.data.media.video import VideoFile
from csl_dist.features.encoders import fit_frame
from csl_dist.service.media import frame_picture
from csl_dist.types import Annotation, Media, Split, Video

CORNERS = np.array([[40, 100], [160, 220]])
"""Brightness of a picture's quarters: left upper, right upper; left lower, right lower."""


def quarters_picture(brighter: int = 0) -> Pixels:
    """32 high, 64 wide."""
    grey = np.kron(CORNERS, np.ones((16, 32))) + brighter
    return np.repeat(grey[:, :, None], 3, axis=2).astype(np.uint8)


def shown_corners(pixels: Pixels) -> np.ndarray:
    height, width = pixels.shape[:2]
    rows, columns = [height // 4, 3 * height // 4], [width // 4, 3 * width // 4]
    return pixels[np.ix_(rows, columns)].mean(axis=2)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_frames_are_turned_and_mirrored_as_the_file_asks(
    tmp_path: Path, suffix: str, degrees: int, mirrored: bool
) -> None:
    path = tmp_path / f"clip{suffix}"
    write_video(path, [quarters_picture()] * 3, fps=10, turn=(degrees, mirrored))
    file = VideoFile(str(path))
    expected = np.rot90(CORNERS, degrees // 90)
    if mirrored:
        expected = expected[:, ::-1]
    for pixels in whole_frames(file.decode(file.times())):
        assert pixels.shape[:2] == ((64, 32) if degrees % 180 else (32, 64))
        assert np.abs(shown_corners(pixels) - expected).max() <= 6


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (Fraction(2), (32, 128)),
        (Fraction(16, 11), (32, 93)),
        (Fraction(1, 2), (64, 64)),
        (Fraction(1000), (32, 64)),  # no camera has such pixels
    ],
)
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_pixels_become_square(
    tmp_path: Path, suffix: str, shape: Fraction, size: tuple[int, int]
) -> None:
    path = tmp_path / f"clip{suffix}"
    codec, options = ("mpeg4", {}) if suffix == ".avi" else ("libx264", {"preset": "ultrafast"})
    if suffix == ".avi" and shape == 1000:
        pytest.skip("MPEG-4 can't say so")
    pictures = [quarters_picture()] * 3
    write_video(path, pictures, fps=10, pixel_shape=shape, codec=codec, options=options)
    [pixels] = whole_frames(VideoFile(str(path)).decode(np.array([0.0])))
    assert pixels.shape[:2] == size
    assert np.abs(shown_corners(pixels) - CORNERS).max() <= 8


def test_variable_rate_with_b_frames_shows_turned_frames_at_their_times(tmp_path: Path) -> None:
    """A phone's file: frames come when there is light for them, and lie on their side."""
    path = tmp_path / "phone.mp4"
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(15, 120, size=30)) / 1000
    times -= times[0]
    pictures = [quarters_picture(brighter) for brighter in range(30)]
    options = {"bf": "3", "g": "12", "crf": "1"}
    write_video(path, pictures, fps=30, options=options, turn=(270, False), times=times.tolist())
    file = VideoFile(str(path))
    assert np.allclose(file.times(), times, atol=1e-3)
    for start in (0, 11, 13, 23):
        wanted = file.times()[start : start + 7]
        for brighter, pixels in enumerate(whole_frames(file.decode(wanted)), start=start):
            expected = np.rot90(CORNERS, 3) + brighter
            assert np.abs(shown_corners(pixels) - expected).max() <= 3


def test_encoder_sees_an_upright_frame_as_it_sees_one_that_was_stored_so(tmp_path: Path) -> None:
    write_video(tmp_path / "lies.mp4", [np.rot90(quarters_picture())], fps=10, turn=(270, False))
    write_video(tmp_path / "stands.mp4", [quarters_picture()], fps=10)
    lies, stands = (
        fit_frame(next(whole_frames(VideoFile(str(tmp_path / name)).decode(np.array([0.0])))), 24)
        for name in ("lies.mp4", "stands.mp4")
    )
    assert np.abs(lies.astype(int) - stands).max() <= 12


def test_page_shows_the_picture_that_the_encoder_sees(tmp_path: Path) -> None:
    path = tmp_path / "phone.mp4"
    write_video(path, [quarters_picture()] * 2, fps=10, turn=(90, False), pixel_shape=Fraction(2))
    video = Video(id="v", split=Split.AUDIT, source=str(path), labels="", media=Media.VIDEO)
    annotation = Annotation(video="v", labels_T=np.zeros(2, int), times_T=np.array([0.0, 0.1]))
    jpeg = frame_picture(video, annotation, 0, 640, (str(tmp_path),))
    pixels = np.asarray(Image.open(io.BytesIO(jpeg)))
    assert pixels.shape[:2] == (128, 32)
    assert np.abs(shown_corners(pixels) - np.rot90(CORNERS)).max() <= 8


def test_pictures_are_turned_as_the_camera_noted(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8  # to be turned by 90 degrees against the clock
    Image.fromarray(quarters_picture()).save(tmp_path / "000001.jpg", exif=exif, quality=95)
    [pixels] = whole_frames(FrameFolder(str(tmp_path), 1.0).decode(np.array([0.0])))
    assert np.abs(shown_corners(pixels) - np.rot90(CORNERS)).max() <= 4
