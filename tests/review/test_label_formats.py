"""Decisions go back into every format, by `csl reviews export` and `csl relabel`, alone."""

import difflib
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from audited import audited, write_feature_files
from format_files import FPS, NUM_FRAMES, SAMPLES, write_sample
from lerobot_files import write_lerobot
from typer.testing import CliRunner

import csl_dist
from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.config import AnnotatedConfig
from csl_dist.data.documents.segment import Segment
from csl_dist.data.layouts import Dataset, corrected_labels, read_labelled
from csl_dist.data.tracks import SegmentTrack
from csl_dist.review.store import Decision, NewReview, store_of
from csl_dist.types import Video, runs_of

PLACES = (Path(__file__).parents[3] / "shared/data", Path("/work/shared/data"))
DATA = next((place for place in PLACES if place.is_dir()), None)


def decide(root: str, video: str, start: int, stop: int, label: str) -> None:
    store = store_of(root, None)
    store.create()
    store.append(
        NewReview(
            key=uuid.uuid4().hex,
            revision=csl_dist.open_audit(root).revision,
            video=video,
            start=start,
            stop=stop,
            reviewer="Ada",
            decision=Decision.WRONG,
            label=label,
        )
    )


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def segments_of(dataset: Dataset, video: Video) -> Sequence[Segment]:
    track = dataset.track(video)
    assert isinstance(track, SegmentTrack)
    return track.segments


def times_of(dataset: Dataset, video: Video) -> list[tuple[float, float, str]]:
    return [(s.start_seconds, s.stop_seconds, s.label) for s in segments_of(dataset, video)]


def replaced_lines(before: bytes, after: bytes) -> list[tuple[list[bytes], list[bytes]]]:
    """Lines of a file that are gone, each group with what stands in its place."""
    one, two = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    codes = matcher.get_opcodes()
    return [(one[a:b], two[c:d]) for kind, a, b, c, d in codes if kind != "equal"]


def replaced(before: bytes, after: bytes) -> list[tuple[str, str]]:
    """Pieces of a file that are gone, each with what stands in its place."""
    one, two = (re.findall(r"\w+|\W", data.decode("latin-1")) for data in (before, after))
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    return [
        ("".join(one[a:b]), "".join(two[c:d]))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


CHANGED = {
    "boris": [("cut", "serve"), ("cut", "serve")],  # a state is two events
    "via": [("1", "3")],  # options have numbers
    "captaincook4d": [("cut", "serve"), ("1", "3")],  # steps have names and numbers
}
"""What changes in a file when its first segment is renamed, where that is more than its name."""


@pytest.mark.parametrize("layout", SAMPLES)
def test_decisions_are_exported_in_the_dataset_s_format_and_audited_again(
    tmp_path: Path, layout: str
) -> None:
    config = write_sample(layout, tmp_path / "data")
    shutil.rmtree(tmp_path / "data/videos")
    write_feature_files(tmp_path / "data/features", dict.fromkeys(("v1", "v2"), NUM_FRAMES))
    config = replace(config, features_fps=FPS)
    root = audited(config, tmp_path / "run", train="v2", audit=("v1",))
    first = csl_dist.open_audit(root)
    old, new = ("G1", "G3") if layout == "jigsaws" else ("cut", "serve")
    wanted_T = first.annotation("v1").labels_T.copy()
    assert first.classes[wanted_T[0]] == old

    decide(root, "v1", 0, 12, new)
    assert "1 span of 1 video in" in run("reviews", "export", root, "--out", tmp_path / "one")
    file = Path(SAMPLES[layout].name.format(video="v1"))
    written = [one for one in (tmp_path / "one").rglob("*") if one.is_file()]
    assert written == [tmp_path / "one" / file], "the files of changed videos alone"
    pieces = replaced((tmp_path / "data" / file).read_bytes(), written[0].read_bytes())
    assert pieces == CHANGED.get(layout, [(old, new)])

    run("relabel", root, tmp_path / "one")
    wanted_T[:12] = first.classes.index(new)
    second = csl_dist.open_audit(root)
    assert second.revision == first.revision + 1
    assert second.annotation("v1").labels_T.tolist() == wanted_T.tolist()

    decide(root, "v1", 15, 30, old)  # a part of two segments, and the gap between them
    run("reviews", "export", root, "--out", tmp_path / "two")
    run("relabel", root, tmp_path / "two")
    wanted_T[15:30] = first.classes.index(old)
    third = csl_dist.open_audit(root)
    assert third.annotation("v1").labels_T.tolist() == wanted_T.tolist()


@pytest.mark.parametrize("form", ["dense", "language"])
def test_subtasks_of_robots_are_exported_and_audited_again(tmp_path: Path, form: str) -> None:
    config = write_lerobot(tmp_path / "data", form=form)
    episodes = ("episode_000001", "episode_000003")
    root = audited(config, tmp_path / "run", train="episode_000002", audit=episodes)
    before = csl_dist.open_audit(root)
    wanted_T = before.annotation(episodes[0]).labels_T.copy()
    decide(root, episodes[0], 10, 20, "lift")
    run("reviews", "export", root, "--out", tmp_path / "out")
    [written] = [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
    old = pq.read_table(tmp_path / "data" / written.relative_to(tmp_path / "out"))
    new = pq.read_table(written)
    labels = [c for c in old.column_names if "subtask" in c or c.startswith("language")]
    assert new.schema.equals(old.schema, check_metadata=True)
    assert new.drop_columns(labels).equals(old.drop_columns(labels))
    run("relabel", root, tmp_path / "out")
    after = csl_dist.open_audit(root)
    wanted_T[10:20] = before.classes.index("lift")
    assert after.annotation(episodes[0]).labels_T.tolist() == wanted_T.tolist()
    untouched_T = before.annotation(episodes[1]).labels_T
    assert after.annotation(episodes[1]).labels_T.tolist() == untouched_T.tolist()


REAL = {
    "elan": ("elan", "formats/elan", {"track": "gestures"}),
    "boris": ("boris", "formats/boris/test.boris", {"track": "No focal subject"}),
    "epic_kitchens": (
        "epic_kitchens",
        "formats/epic_kitchens",
        {"track": "verb", "overlap": "longest"},
    ),
    "anvil": ("anvil", "poem", {"annotator": "OM", "overlap": "first"}),
    "captaincook4d": (
        "captaincook4d",
        "captaincook4d/error_annotations.json",
        {"overlap": "last"},
    ),
    "jigsaws": ("jigsaws", "jigsaws/knot_tying", {"source": "features"}),
}
"""Layout, place of real files, and settings."""
REAL_FPS = 5
MOST_LINES = {"elan": 20, "boris": 20, "epic_kitchens": 6, "anvil": 6}
"""Lines that two decisions may change: one is a new name, the other a new segment, 4 elsewhere."""


@pytest.mark.skipif(DATA is None, reason=f"no real data in {PLACES[0]}")
@pytest.mark.parametrize("case", REAL)
def test_decision_on_real_files_is_exported_and_audited_again(tmp_path: Path, case: str) -> None:
    assert DATA is not None
    layout, where, settings = REAL[case]
    data = tmp_path / "data" / Path(where).name
    data.parent.mkdir()
    shutil.copytree(DATA / where, data) if (DATA / where).is_dir() else shutil.copy(
        DATA / where, data
    )
    if layout == "elan":  # there is one file: another recording has the same labels
        text = (data / "sample_3.0.eaf").read_text().replace("sample_3.0", "other")
        (data / "other.eaf").write_text(text)
    if case == "boris":  # its two videos show different subjects: one would train on nothing
        data.write_text(data.read_text().replace('"subject1"', '""'))
    media = tmp_path / "media"
    config = AnnotatedConfig(
        layout=layout,  # type: ignore[arg-type]
        path=str(data),
        features_fps=REAL_FPS,
        **{"media": str(media), "source": "features"} | settings,  # type: ignore[arg-type]
    )
    labelled = read_labelled(config)
    lengths = {
        v.id: round(REAL_FPS * max(s.stop_seconds for s in segments_of(labelled, v)))
        for v in labelled.videos
    }
    video, *_, train = lengths
    write_feature_files(media, lengths)
    root = audited(config, tmp_path / "run", train=train, audit=(video,))
    before = csl_dist.open_audit(root)
    wanted_T = before.annotation(video).labels_T.copy()
    # The longest segment gets the name of another, and the second half of the longest but one.
    spans = sorted(runs_of(wanted_T), key=len)
    spans = [span for span in spans if wanted_T[span.start] >= 0]
    first, second = spans[-1], spans[-2]
    for start, stop in (
        (first.start, first.stop),
        ((second.start + second.stop) // 2, second.stop),
    ):
        other = next(
            i for i in range(len(before.classes)) if i not in wanted_T[max(0, start - 1) : stop + 1]
        )
        decide(root, video, start, stop, before.classes[other])
        wanted_T[start:stop] = other
    said = run("reviews", "export", root, "--out", tmp_path / "out")
    assert "2 spans of 1 video in" in said
    [written] = [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
    [original] = [one for one in tmp_path.glob("data/**/*") if one.name == written.name]
    num_changed = sum(
        max(len(old), len(new))
        for old, new in replaced_lines(original.read_bytes(), written.read_bytes())
    )
    assert 0 < num_changed <= MOST_LINES.get(case, 4)
    run("relabel", root, tmp_path / "out")
    after = csl_dist.open_audit(root)
    assert after.annotation(video).labels_T.tolist() == wanted_T.tolist()
    again = corrected_labels(config, labelled.classes, labelled.videos, tmp_path / "out")
    assert len(again.videos) >= 1
    for one in again.videos:
        if one.id != video:
            [was] = [v for v in labelled.videos if v.id == one.id]
            assert times_of(again, one) == times_of(labelled, was)
