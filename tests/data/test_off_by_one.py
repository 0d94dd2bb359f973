"""What the numbers of each format mean, a test for each line of the table in docs/formats.md."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from format_files import FPS, SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_files import write_activitynet, write_egoper
from lerobot_files import write_lerobot

from csl_dist.config import AnnotatedConfig, ColumnsConfig, SegmentsConfig
from csl_dist.data.documents.document import Document
from csl_dist.data.documents.edits import Change, Edge, Renaming, changes_of
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.times import Times
from csl_dist.data.formats.tables import SEGMENTS
from csl_dist.data.layouts import LAYOUTS, open_dataset
from csl_dist.data.layouts.documents import DocumentLayout
from csl_dist.errors import DataError

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


def document(layout: str, text: str) -> Document:
    found = LAYOUTS[layout]
    assert isinstance(found, DocumentLayout)
    config: object = AnnotatedConfig(layout=layout, path="x", labels_fps=FPS, track=None)  # type: ignore[arg-type]
    if layout == "segments":
        config = SAMPLES[layout].config("x")
    suffix = SAMPLES[layout].name.rpartition(".")[2]
    return found.format.parse(text.encode(), f"v1.{suffix}", config)


COUNTING_FRAMES = ("label_studio", "cvat")
"""Formats whose times are frames of the video itself."""
FIRST = {
    "elan": (r'TIME_VALUE="1200"', 'TIME_VALUE="1300"', 1.3),
    "boris": (r"\n     1.2,", "\n     1.3,", 1.3),
    "label_studio": (r'"end": 12', '"end": 13', 1.3),
    "cvat": (r'frame="12"', 'frame="13"', 1.3),
    "via": (r"\[0.0,1.2\]", "[0.0,1.3]", 1.3),
    "anvil": (r'end="1.2"', 'end="1.3"', 1.3),
    "epic_kitchens": (r"00:00:01.20", "00:00:01.30", 1.3),
    "captaincook4d": (r'"end_time": 1.2', '"end_time": 1.3', 1.3),
    "assembly101": (r"0\t36\t", "0\t39\t", 1.3),
    "jigsaws": (r"1 36 G1", "1 39 G1", 1.3),
}
"""The end of the first segment in a file, another, and the second at which it is over then."""


@pytest.mark.parametrize("layout", FIRST)
def test_first_segment_starts_at_0_and_ends_where_the_table_says(layout: str) -> None:
    old, new, stop = FIRST[layout]
    text = SAMPLES[layout].text()
    assert re.search(old, text)
    first = document(layout, re.sub(old, lambda _: new, text)).segments[0]
    assert first.start_seconds == 0.0
    assert first.stop_seconds == pytest.approx(stop, abs=1e-9)


def test_cvat_track_without_a_box_outside_ends_after_its_last_box() -> None:
    text = SAMPLES["cvat"].text().replace('frame="12" outside="1"', 'frame="11" outside="0"')
    assert document("cvat", text).segments[0].stop_seconds == pytest.approx(1.2)


def test_cvat_tags_on_neighbouring_frames_are_one_segment_with_the_last_inside() -> None:
    images = "".join(f'<image id="{i}"><tag label="cut"/></image>' for i in (3, 4, 5, 9))
    found = document("cvat", f"<annotations>{images}</annotations>").segments
    assert [(s.start_seconds, s.stop_seconds) for s in found] == [(0.3, 0.6), (0.9, 1.0)]


def test_captaincook4d_step_that_was_left_out_is_none() -> None:
    text = SAMPLES["captaincook4d"].text()
    assert '"start_time": -1' in text
    assert all(s.start_seconds >= 0 for s in document("captaincook4d", text).segments)


def test_boris_takes_the_offset_of_an_observation_off_and_puts_it_back() -> None:
    text = SAMPLES["boris"].text().replace('"time offset": 0.0', '"time offset": 10.0', 1)
    for seconds in ("0.0", "1.2", "2.0", "2.5", "4.0"):
        text = text.replace(f"[\n     {seconds},", f"[\n     {10 + float(seconds)},", 2)
    found = document("boris", text)
    first = found.segments[0]
    assert (first.start_seconds, first.stop_seconds) == (0.0, pytest.approx(1.2))
    changed = replace(first, stop_seconds=1.1)
    written = found.edited([Change(old=first, new=changed)])
    assert b"\n     11.1," in written


@pytest.mark.parametrize("form", ["dense", "language"])
def test_lerobot_counts_from_the_start_of_the_episode(tmp_path: Path, form: str) -> None:
    """Episode 1 begins 3 s into its file; language holds until the next, or the end."""
    dataset = open_dataset(write_lerobot(tmp_path, form=form, videos=False))
    track = dataset.track(dataset.videos[1])
    ids = [dataset.classes.index(name) for name in ("reach", "grasp")]
    at_S = np.array([0.0, 1.4999, 1.5, 1.9999])
    assert track.at(at_S).tolist() == [ids[0], ids[0], ids[1], ids[1]]


def test_activitynet_is_in_seconds_from_0_without_its_end(tmp_path: Path) -> None:
    dataset = open_dataset(write_activitynet(tmp_path))
    track = dataset.track(dataset.videos[0])
    stir = dataset.classes.index("stir")
    assert track.at(np.array([0.4999, 0.5, 0.9999, 1.0])).tolist() == [-1, stir, stir, -1]


def test_egoper_is_cut_off_to_frames_at_10_fps(tmp_path: Path) -> None:
    config = write_egoper(tmp_path)
    file = tmp_path / "annotation.json"
    file.write_text(file.read_text().replace("2.0", "2.09"))
    dataset = open_dataset(config)
    track = dataset.track(dataset.videos[0])
    pour, rest = (dataset.classes.index(name) for name in ("pour water", "background"))
    assert track.at(np.array([0.0, 1.9, 2.0, 3.4, 3.5])).tolist() == [pour, pour, rest, rest, -1]


@pytest.mark.parametrize("layout", [name for name in SAMPLES if name not in COUNTING_FRAMES])
def test_boundary_between_frames_is_written_so_that_no_frame_changes_sides(layout: str) -> None:
    """At 29.97 fps no frame lies at a whole number of milliseconds or hundredths."""
    fps = 30000 / 1001
    found = document(layout, SAMPLES[layout].text())
    own = [segment for segment in found.segments if segment.video == "v1"]
    own = [segment for segment in own if segment.track == own[0].track]
    names = sorted({segment.label for segment in own})

    def edge(frame: int) -> Edge:
        return Edge(after=(frame - 1) / fps, at=frame / fps, middle=(frame - 0.5) / fps)

    def label_at(segments: Sequence[Segment], seconds: float) -> str | None:
        inside = [
            s.label for s in segments if s.start_seconds - 5e-7 <= seconds < s.stop_seconds - 5e-7
        ]
        return inside[0] if inside else None

    for start, stop in ((7, 20), (31, 32), (50, 100)):
        renaming = Renaming(start=edge(start), stop=edge(stop), label=names[0])
        written = found.edited(changes_of(own, [renaming], found.times.snapped))
        again = document(layout, written.decode("latin-1"))
        mine = [s for s in again.segments if s.video == "v1" and s.track == own[0].track]
        for frame in range(119):
            wanted = names[0] if start <= frame < stop else label_at(own, frame / fps)
            assert label_at(mine, frame / fps) == wanted, (start, stop, frame)


def test_every_format_has_its_line_in_the_table() -> None:
    table = DOCS.read_text().partition("## What the numbers mean")[2].partition("## Overlaps")[0]
    named = {match for line in table.splitlines() for match in re.findall(r"^\| `(\w+)`", line)}
    assert set(SAMPLES) | {"lerobot", "activitynet", "egoper"} <= named


@pytest.mark.parametrize(
    ("times", "text", "start", "stop"),
    [
        (Times(unit="s"), "1.5", 1.5, 1.5),
        (Times(unit="s", point=","), "1,5", 1.5, 1.5),
        (Times(unit="ms"), "1500", 1.5, 1.5),
        (Times(unit="ms", inclusive=True), "1499", 1.499, 1.5),
        (Times(unit="frames", fps=10), "15", 1.5, 1.5),
        (Times(unit="frames", fps=10, base=1), "16", 1.5, 1.5),
        (Times(unit="frames", fps=10, inclusive=True), "15", 1.5, 1.6),
        (Times(unit="frames", fps=10, base=1, inclusive=True), "15", 1.4, 1.5),
        (Times(unit="clock"), "00:01:02", 62.0, 62.0),
        (Times(unit="clock"), "1:02:03.25", 3723.25, 3723.25),
        (Times(unit="clock"), "02:03,5", 123.5, 123.5),
        (Times(unit="clock", fps=25), "00:00:01:05", 1.2, 1.2),
    ],
)
def test_numbers_are_seconds_by_unit_base_and_end(
    times: Times, text: str, start: float, stop: float
) -> None:
    assert times.start(text) == pytest.approx(start)
    assert times.stop(text) == pytest.approx(stop)


UNITS = st.sampled_from(
    [
        ("s", None),
        ("ms", None),
        ("frames", 10.0),
        ("frames", 25.0),
        ("frames", 29.97),
        ("clock", None),
        ("clock", 25.0),
    ]
)
LABELS = st.sampled_from(["cut", "stir", 'say "hi", then go', "ünïcode; step"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[SegmentsConfig, str]:
    """A table of one video whose segments do not overlap, and its config."""
    unit, fps = draw(UNITS)
    base = draw(st.sampled_from([0, 1])) if unit in ("ms", "frames") else 0
    inclusive = draw(st.booleans()) if unit in ("ms", "frames") else False
    kind = draw(st.sampled_from(["stop", "duration", "starts"]))
    config = SegmentsConfig(
        path="t.csv",
        columns=ColumnsConfig(
            start="from",
            label="what",
            stop="to" if kind == "stop" else None,
            duration="to" if kind == "duration" else None,
        ),
        unit=unit,
        base=base,  # type: ignore[arg-type]
        inclusive=inclusive,
        labels_fps=fps,
        delimiter=draw(st.sampled_from([",", "\t", ";"])),
    )
    rate = fps or 10.0
    times = Times(unit=unit, fps=fps, base=base, inclusive=inclusive)  # type: ignore[arg-type]
    plain = Times(unit=unit, fps=fps)  # type: ignore[arg-type]
    edges = sorted(draw(st.sets(st.integers(0, 300), min_size=2, max_size=8)))
    quote = '"{}"'
    rows = []
    for a, b in pairwise(edges):
        start, stop = a / rate, b / rate
        end = times.stop_text(stop) if kind == "stop" else plain.start_text(stop - start)
        name = quote.format(draw(LABELS).replace('"', '""'))
        rows.append((config.delimiter or ",").join([times.start_text(start), end, name]))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    header = (config.delimiter or ",").join(["from", "to", "what"])
    text = ending.join([header, *rows]) + (ending if draw(st.booleans()) else "")
    return config, text


@settings(max_examples=60, deadline=None)
@given(made=tables(), start=st.integers(0, 200), length=st.integers(1, 100), label=LABELS)
def test_any_table_is_read_written_and_read_again(
    made: tuple[SegmentsConfig, str], start: int, length: int, label: str
) -> None:
    config, text = made
    read = SEGMENTS.parse(text.encode(), "t.csv", config)
    assert read.edited([]) == text.encode()
    rate = config.labels_fps or 10.0

    def edge(frame: int) -> Edge:
        return Edge(after=(frame - 1) / rate, at=frame / rate, middle=(frame - 0.5) / rate)

    renaming = Renaming(start=edge(start), stop=edge(start + length), label=label)
    changes = changes_of(read.segments, [renaming], read.times.snapped)
    written = read.edited(changes)
    if config.columns.stop is None and config.columns.duration is None:
        return  # time that no segment covered can't be told from the last segment there
    again = SEGMENTS.parse(written, "t.csv", config)

    def at(found: Document, seconds: float) -> str | None:
        inside = [
            s for s in found.segments if s.start_seconds - 5e-7 <= seconds < s.stop_seconds - 5e-7
        ]
        assert len(inside) <= 1
        return inside[0].label if inside else None

    for frame in range(310):
        renamed = start <= frame < start + length
        expected = label if renamed else at(read, frame / rate)
        assert at(again, frame / rate) == expected


def test_table_with_decimal_commas_keeps_them() -> None:
    text = "video;from;to;what\na.mp4;0;15,65;cut\na.mp4;15,65;27,4;stir\n"
    columns = ColumnsConfig(start="from", stop="to", label="what", video="video")
    read = SEGMENTS.parse(text.encode(), "t.csv", SegmentsConfig(path="t.csv", columns=columns))
    assert [(s.start_seconds, s.stop_seconds) for s in read.segments] == [(0, 15.65), (15.65, 27.4)]
    earlier = Renaming(
        start=Edge(after=12.2, at=12.25, middle=12.22),
        stop=Edge(after=15.6, at=15.65, middle=15.62),
        label="stir",
    )
    changed = read.edited(changes_of(read.segments, [earlier], read.times.snapped))
    assert changed.decode() == text.replace("15,65", "12,25")


def test_row_with_more_values_than_names_is_refused_as_columns_are_shifted() -> None:
    text = "start,stop,label,by\n0,2,cut,me\n2,4,wash, then dry,me\n"
    config = SegmentsConfig(
        path="t.csv", columns=ColumnsConfig(start="start", stop="stop", label="label")
    )
    with pytest.raises(DataError, match=r"^t.csv:3: expected 4 columns, .* got 5; put a value"):
        SEGMENTS.parse(text.encode(), "t.csv", config)
    SEGMENTS.parse(text.replace(" then dry,me", "me,,").encode(), "t.csv", config)
