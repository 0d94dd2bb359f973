"""Copies that browsers play: of the same frames at the same times."""

import time
from fractions import Fraction
from pathlib import Path

import av
import builder
import numpy as np
import pytest

from csl_dist.data.media.transcoding import CACHE_VARIABLE, playable_copy, transcode
from csl_dist.data.media.video import VideoFile

BRIGHTNESS = [20, 60, 100, 140, 180, 220] * 4


@pytest.fixture
def odd_file(tmp_path: Path) -> str:
    """A file of a kind that browsers do not play."""
    path = tmp_path / "odd.avi"
    builder.write_video(path, builder.grey_pictures(BRIGHTNESS), fps=10, codec="mpeg4", options={})
    return str(path)


def test_copy_has_the_frames_of_the_original_at_their_times(odd_file: str, tmp_path: Path) -> None:
    transcode(odd_file, tmp_path / "copy.mp4")
    copy = VideoFile(str(tmp_path / "copy.mp4"))
    times_T = copy.times()
    np.testing.assert_allclose(times_T, VideoFile(odd_file).times(), atol=1e-3)
    shown = [float(np.mean(frame)) for frame in copy.decode(times_T)]
    np.testing.assert_allclose(shown, BRIGHTNESS, atol=8)
    with av.open(copy.path) as opened:
        assert opened.streams.video[0].codec_context.name == "h264"


def test_copy_is_made_in_the_background_and_only_once(
    odd_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    assert playable_copy(odd_file).path is None
    deadline = time.monotonic() + 120
    while (made := playable_copy(odd_file)).path is None:
        assert made.problem is None
        assert time.monotonic() < deadline
    before = made.path.stat().st_mtime_ns
    assert playable_copy(odd_file).path == made.path
    assert made.path.stat().st_mtime_ns == before


def test_file_that_is_no_video_says_so_instead_of_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    broken = tmp_path / "broken.avi"
    broken.write_bytes(b"nothing")
    deadline = time.monotonic() + 120
    while (made := playable_copy(str(broken))).problem is None:
        assert time.monotonic() < deadline
    assert "broken.avi" in made.problem
    assert list((tmp_path / "cache").iterdir()) == []


def test_copy_is_turned_and_stretched_as_its_source(tmp_path: Path) -> None:
    source, copy = tmp_path / "phone.mkv", tmp_path / "copy.mp4"
    picture = np.zeros((32, 64, 3), dtype=np.uint8)
    picture[:16, 32:] = 250  # the right upper corner
    builder.write_video(source, [picture] * 3, fps=10, pixel_shape=Fraction(3, 2), turn=(90, False))
    transcode(str(source), copy)
    for file in (source, copy):
        [shown] = VideoFile(str(file)).decode(np.array([0.0]))
        assert shown.shape[:2] == (96, 32)
        assert shown[10, 5].mean() > 200, "is the left upper one then"
        assert shown[80, 5].mean() < 50
