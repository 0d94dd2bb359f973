"""Real files of annotation tools and datasets, beside an independent reading of each."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from csl_dist.config import AnnotatedConfig
from csl_dist.data.documents.segment import Segment, overlaps
from csl_dist.data.layouts import LAYOUTS, read_labelled
from csl_dist.data.layouts.documents import DocumentLayout
from csl_dist.data.layouts.label_sets import read_sets

PLACES = (Path(__file__).parents[3] / "shared/data", Path("/work/shared/data"))
DATA = next((place for place in PLACES if place.is_dir()), None)
pytestmark = pytest.mark.skipif(DATA is None, reason=f"no real data in {PLACES[0]}")


def segments(layout: str, *files: str) -> list[Segment]:
    """All segments of some files, each of which is also written back and compared."""
    assert DATA is not None
    found = LAYOUTS[layout]
    assert isinstance(found, DocumentLayout)
    config = AnnotatedConfig(layout=layout, path=".")  # type: ignore[arg-type]
    everything: list[Segment] = []
    for file in files:
        data = (DATA / file).read_bytes()
        document = found.format.parse(data, str(DATA / file), config)
        assert document.edited([]) == data
        everything += document.segments
    return everything


def test_elan_tiers_are_those_that_pympi_reads() -> None:
    pympi = pytest.importorskip("pympi", reason="pympi-ling is not installed")
    assert DATA is not None
    file = "formats/elan/sample_3.0.eaf"
    ours = segments("elan", file)
    theirs = pympi.Elan.Eaf(str(DATA / file))
    for tier in ("text", "gestures"):
        expected = sorted(
            (a / 1000, b / 1000, v) for a, b, v in theirs.get_annotation_data_for_tier(tier)
        )
        found = [(s.start_seconds, s.stop_seconds, s.label) for s in ours if s.track == tier]
        assert sorted(found) == expected
    assert len(ours) == 4788


def test_boris_project_and_its_export_tell_the_same_state_events() -> None:
    table = segments("boris", "formats/boris/test_export_aggregated_events_test_full_1.tsv")
    assert DATA is not None
    rows = (DATA / "formats/boris/test_export_aggregated_events_test_full_1.tsv").read_text()
    plain = [row for row in csv.DictReader(rows.splitlines(), delimiter="\t")]
    # The second file was played after the first, and its times count from the first one's start.
    states = [
        row
        for row in plain
        if row["Behavior type"] == "STATE" and row["Media file"] == "video_test_25fps_180s.mp4"
    ]
    assert [(s.track, s.label, s.start_seconds, s.stop_seconds) for s in table] == [
        (r["Subject"], r["Behavior"], float(r["Start (s)"]), float(r["Stop (s)"])) for r in states
    ]
    project = segments("boris", "formats/boris/test.boris")
    events = json.loads((DATA / "formats/boris/test.boris").read_text())
    times = [t for t, *_ in events["observations"]["observation #1"]["events"]]
    own = [s for s in project if s.video == "video_test_25fps_360s"]
    assert sorted(t for s in own for t in (s.start_seconds, s.stop_seconds)) == times


def test_epic_kitchens_segments_and_overlaps_are_counted_as_a_plain_reading_does() -> None:
    assert DATA is not None
    path = DATA / "formats/epic_kitchens/EPIC_100_validation.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    found = segments("epic_kitchens", "formats/epic_kitchens/EPIC_100_validation.csv")
    verbs = [s for s in found if s.track == "verb"]
    assert len(verbs) == len(rows) == 9668

    def seconds(text: str) -> float:
        hours, minutes, rest = text.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(rest)

    for row, segment in zip(rows, verbs, strict=True):
        assert segment.video == row["video_id"]
        assert segment.start_seconds == pytest.approx(seconds(row["start_timestamp"]), abs=1e-9)
        assert segment.stop_seconds == pytest.approx(seconds(row["stop_timestamp"]), abs=1e-9)
    by_video: dict[str, list[Segment]] = {}
    for segment in verbs:
        by_video.setdefault(segment.video, []).append(segment)
    count = 0
    for own in by_video.values():
        latest = -1.0
        for start, stop in sorted((s.start_seconds, s.stop_seconds) for s in own):
            count += start < latest - 1e-6
            latest = max(latest, stop)
    assert sum(len(overlaps(own)) for own in by_video.values()) == count == 2610

    def by_frames() -> int:
        """The same by the columns of frames, with their ends inside."""
        frames = sorted((r["video_id"], int(r["start_frame"]), int(r["stop_frame"])) for r in rows)
        number, latest = 0, ("", -1)
        for video, start, stop in frames:
            number += video == latest[0] and start <= latest[1]
            latest = (video, max(stop, latest[1] if video == latest[0] else stop))
        return number

    assert by_frames() == 2686


def test_captaincook4d_steps_that_were_left_out_have_no_segment() -> None:
    assert DATA is not None
    content = json.loads((DATA / "captaincook4d/error_annotations.json").read_text())
    steps = [s for recording in content for s in recording["step_annotations"]]
    done = [(s["start_time"], s["end_time"]) for s in steps if s["start_time"] >= 0]
    found = segments("captaincook4d", "captaincook4d/error_annotations.json")
    assert [(s.start_seconds, s.stop_seconds) for s in found] == done
    assert len(steps) - len(done) == 132


def test_poem_has_three_annotators_of_fourteen_operations() -> None:
    assert DATA is not None
    config = AnnotatedConfig(layout="anvil", path=str(DATA / "poem"))
    dataset = read_labelled(config)
    assert len(dataset.videos) == 42
    assert len({video.id for video in dataset.videos}) == 14
    assert {video.annotator for video in dataset.videos} == {"OM", "DAH", "tmw"}
    for video in dataset.videos[:6]:
        elements = ET.parse(video.labels).getroot().iter("el")
        expected = [(float(e.attrib["start"]), float(e.attrib["end"]), e[0].text) for e in elements]
        own = dataset.read_track.segments[video.id, video.annotator]  # type: ignore[attr-defined]
        assert [(s.start_seconds, s.stop_seconds, s.label) for s in own] == expected


def test_jigsaws_gestures_are_frames_from_1_with_the_end_inside() -> None:
    assert DATA is not None
    folder = DATA / "jigsaws/knot_tying"
    layout = LAYOUTS["jigsaws"]
    assert isinstance(layout, DocumentLayout)
    files = sorted((folder / "gestures").glob("*.txt"))
    sets = read_sets(files, layout.format, None)
    assert len(sets.segments) == 36
    for file in files:
        lines = [line.split() for line in file.read_text().splitlines() if line.strip()]
        own = sets.segments[file.stem, None]
        for (first, last, gesture), segment in zip(lines, own, strict=True):
            assert segment.label == gesture
            assert segment.start_seconds == pytest.approx((int(first) - 1) / 30)
            assert segment.stop_seconds == pytest.approx(int(last) / 30)
