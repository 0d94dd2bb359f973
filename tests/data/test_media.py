from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from builder import grey_pictures, write_video

from csl_dist.data.content import Contents
from csl_dist.data.media.pixels import whole_frames
from csl_dist.data.media.sources import file_and_array, files_below, media_of
from csl_dist.data.media.timeline import sampled
from csl_dist.data.media.video import VideoFile
from csl_dist.errors import DataError
from csl_dist.types import Media


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Ten seconds at 25 fps whose brightness tells the frame: frame n has value n."""
    path = tmp_path / "clip.mp4"
    write_video(path, grey_pictures(range(250)), fps=25, options={"crf": "1", "g": "30"})
    return path


def shown_frames(path: Path, times: np.ndarray) -> list[int]:
    return [
        round(float(frame.mean())) for frame in whole_frames(VideoFile(str(path)).decode(times))
    ]


def test_frame_times_are_those_of_the_frame_rate(clip: Path) -> None:
    assert np.allclose(VideoFile(str(clip)).times(), np.arange(250) / 25, atol=1e-6)


def test_decode_of_all_times_shows_every_frame_once(clip: Path) -> None:
    shown = shown_frames(clip, VideoFile(str(clip)).times())
    assert len(shown) == 250
    assert np.abs(np.array(shown) - np.arange(250)).max() <= 2


@pytest.mark.parametrize("start", [0, 29, 30, 31, 200])
def test_decode_of_a_chunk_starts_at_its_first_frame(clip: Path, start: int) -> None:
    shown = shown_frames(clip, VideoFile(str(clip)).times()[start : start + 40])
    assert np.abs(np.array(shown) - np.arange(start, start + 40)).max() <= 2


def test_sampled_times_are_the_nearest_frames(clip: Path) -> None:
    times = VideoFile(str(clip)).times()
    timeline, index = sampled(times, 5)
    assert np.allclose(timeline.times_T, np.arange(0, 250, 5) / 25, atol=1e-6)
    assert index.tolist() == list(range(0, 250, 5))
    assert timeline.duration == pytest.approx(10)
    assert timeline.source_fps == pytest.approx(25)
    assert len(sampled(times, None)[1]) == 250
    assert len(sampled(times, 100)[1]) == 250, "no frame is taken twice"
    at_ten = sampled(times, 10)[0].times_T
    assert np.abs(at_ten - np.arange(len(at_ten)) / 10).max() <= 0.021


def test_single_frame_is_a_timeline() -> None:
    timeline, index = sampled(np.array([0.0]), 5)
    assert index.tolist() == [0]
    assert timeline.duration == pytest.approx(0.2)


def test_time_without_a_frame_is_an_error_with_the_time(clip: Path) -> None:
    with pytest.raises(DataError, match=r"clip\.mp4: the frame at 20\.00 s can't be decoded"):
        list(whole_frames(VideoFile(str(clip)).decode(np.array([9.96, 20.0]))))


@pytest.mark.parametrize("content", [b"", b"not a video at all"])
def test_file_that_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.mp4"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"can't open the video .*bad\.mp4"):
        VideoFile(str(path)).times()


def test_content_tells_a_replaced_file_and_not_a_copied_one(clip: Path) -> None:
    video = VideoFile(str(clip))
    before = video.content(Contents())
    copy = clip.with_name("copy.mp4")
    copy.write_bytes(clip.read_bytes())
    assert VideoFile(str(copy)).content(Contents()) == before
    clip.write_bytes(clip.read_bytes()[:-1])
    assert video.content(Contents()) != before


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("clip.avi", "mpeg4", {"bf": "2", "g": "24", "qscale": "2"}),
        ("clip.ts", "libx264", {"crf": "1", "g": "30", "bf": "2"}),
        ("clip.mpg", "mpeg2video", {"g": "12", "bf": "2", "qscale": "2"}),
        ("clip.mkv", "libx264", {"crf": "1", "g": "30", "bf": "3"}),
    ],
)
def test_frames_of_other_containers_come_in_order(
    tmp_path: Path, name: str, codec: str, options: dict[str, str]
) -> None:
    """AVI swaps timestamps of B-frames; the others start late or have no index to seek by."""
    path = tmp_path / name
    pictures = grey_pictures(range(0, 200, 2), size=64)
    write_video(path, pictures, fps=25, codec=codec, options=options)
    times = VideoFile(str(path)).times()
    assert len(times) == 100
    for start in (0, 30, 49, 90):
        shown = shown_frames(path, times[start : start + 10])
        assert np.abs(np.array(shown) - 2 * np.arange(start, start + 10)).max() <= 4


def test_broken_bytes_in_the_middle_are_an_error_with_the_time(clip: Path) -> None:
    data = bytearray(clip.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    clip.write_bytes(bytes(data))
    video = VideoFile(str(clip))
    with pytest.raises(DataError, match=r"the frame at \d+\.\d\d s can't be decoded"):
        list(whole_frames(video.decode(video.times())))


def test_frames_after_broken_bytes_are_the_right_ones(clip: Path) -> None:
    """What can't be decoded comes as an error in its place; what follows is not moved."""
    intact = list(VideoFile(str(clip)).decode(VideoFile(str(clip)).times()))
    data = bytearray(clip.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    clip.write_bytes(bytes(data))
    video = VideoFile(str(clip))
    frames = list(video.decode(video.times()))
    assert len(frames) == 250
    bad = [n for n, frame in enumerate(frames) if isinstance(frame, DataError)]
    assert bad
    assert len(bad) < 60, "decoding goes on at the next key frame"
    after = max(bad) // 30 * 30 + 30
    for n in [*range(min(bad)), *range(after, 250)]:
        assert np.array_equal(frames[n], intact[n])


@pytest.mark.parametrize("rate", [Fraction(30), Fraction(30000, 1001), Fraction(60), Fraction(25)])
def test_rate_of_timestamps_in_milliseconds_is_that_of_the_file(
    tmp_path: Path, rate: Fraction
) -> None:
    """Matroska's are: 33 or 34 at 30 a second, of which the median would make 30.3."""
    path = tmp_path / "clip.mkv"
    write_video(path, grey_pictures([0] * 300), fps=rate)
    timeline, _ = sampled(VideoFile(str(path)).times(), None)
    assert timeline.source_fps == pytest.approx(float(rate), rel=1e-4)
    assert timeline.duration == pytest.approx(300 / float(rate), abs=2e-3)


def test_rate_of_timestamps_with_gaps_is_that_of_the_frames_between() -> None:
    shown = np.round(np.arange(3000) / 30, 3)
    timeline, _ = sampled(np.delete(shown, slice(1000, 1500)), None)
    assert timeline.source_fps == pytest.approx(30, rel=1e-4)


@pytest.mark.parametrize(
    ("source", "media", "parts"),
    [
        ("Fall #10 Müller (2).mkv", Media.VIDEO, ("Fall #10 Müller (2).mkv", "")),
        ("Fall #10", Media.FRAMES, ("Fall #10", "")),
        ("case #2.npy", Media.FEATURES, ("case #2.npy", "")),
        ("case #2.h5#left #1", Media.FEATURES, ("case #2.h5", "left #1")),
        ("all.ZARR#v1", Media.FEATURES, ("all.ZARR", "v1")),
    ],
)
def test_hash_in_a_name_names_an_array_only_behind_a_file_of_arrays(
    source: str, media: Media, parts: tuple[str, str]
) -> None:
    assert media_of(source) is media
    assert file_and_array(source) == parts


def test_files_below_follow_links_to_folders_and_no_circle(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "elsewhere/deep/a.mp4").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/videos").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/up").symlink_to(tmp_path / "data")
    assert files_below(tmp_path / "data") == [tmp_path / "data/videos/deep/a.mp4"]
