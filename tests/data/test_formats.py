"""Every format of label documents: what is read, and what is written back."""

import difflib
from pathlib import Path

import numpy as np
import pytest
from format_files import (
    FPS,
    NUM_FRAMES,
    SAMPLES,
    TIMES_T,
    boris_table_text,
    drawn,
    renaming,
    write_sample,
)
from layout_files import touch

from csl_dist.config import AnnotatedConfig
from csl_dist.data.formats.boris import FORMAT as BORIS
from csl_dist.data.layouts import (
    LAYOUTS,
    Dataset,
    corrected_labels,
    open_dataset,
    write_renamed,
)
from csl_dist.data.layouts.documents import DocumentLayout
from csl_dist.data.tracks import SegmentTrack
from csl_dist.types import IntArray, Video


def raster(segments: tuple[tuple[float, float, str], ...], classes: tuple[str, ...]) -> IntArray:
    """Class ids (40,) by the segments' own times: the plainest reading there is."""
    ids_T = np.full(NUM_FRAMES, -1)
    for start, stop, label in segments:
        ids_T[round(start * FPS) : round(stop * FPS)] = classes.index(label)
    return ids_T


def said(dataset: Dataset, video: Video) -> list[tuple[float, float, str]]:
    track = dataset.track(video)
    assert isinstance(track, SegmentTrack)
    return [(s.start_seconds, s.stop_seconds, s.label) for s in track.segments]


@pytest.mark.parametrize("layout", SAMPLES)
def test_document_is_read_with_its_times_and_labels(tmp_path: Path, layout: str) -> None:
    dataset = open_dataset(write_sample(layout, tmp_path))
    assert dataset.problems == ()
    assert [video.id for video in dataset.videos] == ["v1", "v2"]
    assert dataset.classes == tuple(sorted({name for _, _, name in drawn(layout, "v1")}))
    for video in dataset.videos:
        assert Path(video.source) == tmp_path / f"videos/{video.id}.mp4"
        found = said(dataset, video)
        expected = drawn(layout, video.id)
        assert [label for *_, label in found] == [label for *_, label in expected]
        np.testing.assert_allclose(
            [times[:2] for times in found], [times[:2] for times in expected], atol=1e-9
        )
        labels_T = dataset.track(video).at(TIMES_T)
        assert labels_T.tolist() == raster(expected, dataset.classes).tolist()


@pytest.mark.parametrize("layout", SAMPLES)
def test_document_without_changes_is_written_byte_by_byte(tmp_path: Path, layout: str) -> None:
    config = write_sample(layout, tmp_path)
    found = LAYOUTS[layout]
    assert isinstance(found, DocumentLayout)
    for video in open_dataset(config).videos:
        data = Path(video.labels).read_bytes()
        assert found.format.parse(data, video.labels, config).edited([]) == data


CASES = {
    "a whole segment": [(0, 12, 1)],
    "the start of one": [(12, 15, 2)],
    "the end of one": [(9, 12, 2)],
    "the middle of one": [(3, 7, 2)],
    "over a boundary": [(8, 16, 2)],
    "over several": [(5, 35, 1)],
    "a gap": [(21, 24, 0)],
    "up to the end": [(30, 40, 0)],
    "all": [(0, 40, 2)],
    "joined to its neighbour": [(12, 20, 0)],
    "two places": [(2, 5, 1), (30, 33, 0)],
    "one over another": [(2, 10, 1), (4, 6, 2)],
}
"""Spans of v1 and the class that each gets."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", SAMPLES)
def test_renamed_spans_come_back_as_they_were_asked_for(
    tmp_path: Path, layout: str, case: str
) -> None:
    config = write_sample(layout, tmp_path / "data")
    dataset = open_dataset(config)
    first, second = dataset.videos
    expected_T = dataset.track(first).at(TIMES_T)
    for start, stop, label in CASES[case]:
        expected_T[start:stop] = label
    written = write_renamed(
        config,
        dataset.videos,
        {"v1": [renaming(a, b, dataset.classes[label]) for a, b, label in CASES[case]]},
        frame_rates={"v1": FPS},
        out=tmp_path / "out",
    )
    place = Path(first.labels).relative_to(tmp_path / "data")
    assert written == [tmp_path / "out" / place]
    again = corrected_labels(config, dataset.classes, dataset.videos, tmp_path / "out")
    assert again.videos[0].labels == str(tmp_path / "out" / place)
    assert again.track(again.videos[0]).at(TIMES_T).tolist() == expected_T.tolist()
    if second.labels == first.labels:
        assert said(again, again.videos[1]) == said(dataset, second)


def test_aggregated_events_of_boris_are_read_and_written(tmp_path: Path) -> None:
    text = boris_table_text()
    assert BORIS.parse(text.encode(), "e.tsv", None).edited([]) == text.encode()
    (tmp_path / "e.tsv").write_bytes(text.encode())
    for video in ("v1", "v2"):
        touch(tmp_path / f"videos/{video}.mp4")
    config = AnnotatedConfig(layout="boris", path=str(tmp_path), folds=2)
    dataset = open_dataset(config)
    assert [said(dataset, video) for video in dataset.videos] == [
        list(drawn("boris", video.id)) for video in dataset.videos
    ]
    [written] = write_renamed(
        config,
        dataset.videos,
        {"v1": [renaming(12, 20, "cut")]},
        frame_rates={"v1": FPS},
        out=tmp_path / "out",
    )
    removed, added = changed_lines(text.encode(), written.read_bytes())
    assert [line.split("\t")[5:9] for line in removed] == [
        ["cut", "STATE", "0.000", "1.200\r\n"],
        ["stir", "STATE", "1.200", "2.000\r\n"],
    ]
    assert [line.split("\t")[5:9] for line in added] == [["cut", "STATE", "0.000", "2.000\r\n"]]


def test_rows_of_files_that_boris_played_after_another_are_left_out(tmp_path: Path) -> None:
    """Their times count from the start of the first file, whose length the table does not tell."""
    text = boris_table_text().replace("of v2", "of v1").replace("1.000\t3.000", "5.000\t7.000")
    text = text.replace("0.000\t1.000", "4.000\t5.000")
    document = BORIS.parse(text.encode(), "e.tsv", None)
    assert {segment.video for segment in document.segments} == {"v1"}
    assert (
        "2 rows are left out whose times count from the start of another video"
        in (document.notes[-1])
    )


def changed_lines(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Lines that are gone, and lines that are new."""
    one, two = (data.decode("latin-1").splitlines(keepends=True) for data in (before, after))
    lines = [line for line in difflib.ndiff(one, two) if line[0] in "+-"]
    return tuple([line[2:] for line in lines if line[0] == sign] for sign in "-+")  # type: ignore[return-value]


ONE_LINE = ("label_studio", "via")
"""Formats whose files are one line."""


@pytest.mark.parametrize("layout", [name for name in SAMPLES if name not in ONE_LINE])
def test_renaming_one_segment_changes_no_other_line(tmp_path: Path, layout: str) -> None:
    config = write_sample(layout, tmp_path / "data")
    dataset = open_dataset(config)
    old, new = ("G1", "G3") if layout == "jigsaws" else ("cut", "serve")
    [written] = write_renamed(
        config,
        dataset.videos,
        {"v2": [renaming(10, 30, new)]},
        frame_rates={"v2": FPS},
        out=tmp_path / "out",
    )
    before = Path(dataset.videos[1].labels).read_bytes()
    removed, added = changed_lines(before, written.read_bytes())
    changes = [(one, two) for one, two in zip(removed, added, strict=True) if "step_id" not in one]
    assert len(changes) == (2 if layout == "boris" else 1)
    for one, two in changes:
        assert two == (new.join(one.rsplit(old, 1)))
