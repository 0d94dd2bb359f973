"""Twelve malformed files of each format: each is one sentence, none is half read."""

from dataclasses import replace
from pathlib import Path

import pytest
from format_files import SAMPLES, write_sample
from layout_files import WRITERS

from csl_dist.config import DatasetConfig
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.errors import DataError

XML = [
    (None, "", "is not valid XML"),
    ("</", "<", "is not valid XML"),
]
JSON = [
    (None, "", "is not valid JSON"),
    ("]", "", "is not valid JSON"),
    (None, "3", "expected|is no|has no task"),
]
CASES: dict[str, list[tuple[str | None, str, str]]] = {
    "elan": [
        *XML,
        (None, "<a/>", "no <TIME_ORDER>"),
        ("TIME_SLOT ", "SLOT ", "there is no time slot ts1"),
        ('"milliseconds"', '"NTSC-frames"', "times are in NTSC-frames"),
        ('TIME_VALUE="1200"', 'TIME_VALUE="soon"', "TIME_VALUE is 'soon'"),
        ('TIME_SLOT_ID="ts2"', 'TIME_SLOT_ID="ts1"', "time slot ts1 is there twice"),
        ('TIME_SLOT_REF2="ts2"', 'TIME_SLOT_REF2="ts9"', "there is no time slot ts9"),
        ('TIME_SLOT_REF1="ts1"', "", "has no TIME_SLOT_REF1"),
        (' TIME_VALUE="0"', "", "has no time, and none before it"),
        ('TIER_ID="steps"', "", "<TIER> has no TIER_ID"),
        ('TIME_VALUE="1200"', 'TIME_VALUE="3000"', "must end after its start"),
    ],
    "boris": [
        *JSON,
        ('"observations"', '"sessions"', "it has no observations"),
        ('"behaviors_conf"', '"behaviors"', "it has no behaviors_conf"),
        ('"code": "cut"', '"name": "cut"', "expected a code and a type"),
        ('"events"', '"marks"', "has no list of events"),
        ("    1.2,\n", '    "later",\n', "expected an event"),
        ('"stir",', '"bake",', "'bake' is not among the project's behaviors"),
        ("    2.0,\n", "    -2.0,\n", "starts at -2 s, before the video does"),
        ('"file":', '"files":', "has no state event in an observation of one media file"),
        ("    4.0,\n", "    2.5,\n", "must end after its start"),
    ],
    "label_studio": [
        *JSON,
        (None, "[]", "no result of the type timelinelabels"),
        ('"data"', '"meta"', "expected a task with data"),
        ('"annotations"', '"labels"', "no list of annotations; export as JSON, not JSON-MIN"),
        ('"video": "/data/upload/1/', '"video": 1, "a": {"b": "', "is not valid JSON"),
        ('"result"', '"results"', "the annotation has no list of results"),
        ('"ranges"', '"range"', "expected ranges and one label"),
        ('["cut"]', '["cut", "stir"]', "expected ranges and one label"),
        ('"start": 1,', '"from": 1,', "expected start and end"),
        ('"start": 1,', '"start": "x",', "start is 'x'"),
    ],
    "cvat": [
        *XML,
        (None, "<project/>", "is no export of CVAT"),
        (None, "<annotations/>", "has neither a <track> nor a <tag>"),
        ('frame="0"', 'frame="first"', "frame is 'first', expected a frame number"),
        ('frame="0"', "", "<box> has no frame"),
        ('outside="0"', 'outside="1"', "no shape that is inside"),
        (' label="cut"', "", "<track> has no label"),
        ('label="cut"', 'label=""', "the label is empty"),
        ('frame="12"', 'frame="-3"', "frame is '-3'"),
        ("<track id", "<image/><track id", "<image> has no id"),
        (
            '    <box frame="12" outside="1"',
            '    <box frame="6" outside="1"/>\n    <box frame="12" outside="0"',
            "is outside at frame 6 and comes back later",
        ),
    ],
    "via": [
        *JSON,
        ('"metadata"', '"data"', "it has no metadata"),
        ('"attribute"', '"attributes"', "it has no attribute"),
        ('"view"', '"views"', "it has no view"),
        ('"vid":"1"', '"video":"1"', "expected vid, z and av"),
        ('"z":[0.0,1.2]', '"z":{"0":1}', "z must be a list"),
        ('"z":[0.0,1.2]', '"z":["a",1.2]', "the start is 'a'"),
        ('"av":{"1":"1"}', '"av":{"7":"1"}', "there is no attribute '7'"),
        ('"fid_list":["1"]', '"fid_list":["5"]', "view '1' names no file"),
        ('"z":[0.0,1.2]', '"z":[1.3,1.2]', "must end after its start"),
    ],
    "anvil": [
        *XML,
        (None, "<annotations/>", "is no Anvil file"),
        ("body>", "bodies>", "has no <track> in its <body>"),
        ("track", "trace", "has no <track> in its <body>"),
        (' name="steps"', "", "<track> has no name"),
        ('end="1.2"', "", "<el> has no end"),
        ('start="0.0"', "", "<el> has no start"),
        ('start="0.0"', 'start="zero"', "start is 'zero'"),
        (">cut<", "><", "the label is empty"),
        ('<attribute name="step">cut</attribute>', "", "has no <attribute>, so no label"),
        ('end="1.2"', 'end="-1"', "must end after its start"),
    ],
    "epic_kitchens": [
        (None, "", "is empty"),
        (None, "narration_id,participant_id,video_id,\n", "no column"),
        ("start_timestamp", "begin", "no column 'start_timestamp'"),
        ("stop_timestamp", "end", "no column 'stop_timestamp'"),
        (",verb_class", ",verb_number", "no column 'verb_class'"),
        ("participant_id", "person", "no column 'participant_id'"),
        ("00:00:00.00", "0 s", "the start is '0 s'"),
        ("00:00:01.20,1,2,cut", "00:99:01.20,1,2,cut", "minutes and seconds go up to 59"),
        ("00:00:01.20,1,2,cut", "00:00:00.00,1,2,cut", "must end after its start"),
        ("\"['pan', 'lid']\"", "\"['pan'\"x", "text goes on after a quote"),
        ("cut,cut,pan", "cut,,pan", "the label is empty"),
        ("v1_0,P01,v1", "v1_0,P01,", "the name of the video is empty"),
    ],
    "captaincook4d": [
        *JSON,
        (None, "[]", "no step with times"),
        (None, "[7]", "expected a recording with recording_id"),
        ('"recording_id"', '"id"', "expected a recording with recording_id"),
        ('"step_annotations"', '"annotations"', "expected a recording with recording_id"),
        ('"start_time"', '"start"', "expected a step with start_time"),
        ('"description"', '"text"', "expected a step with start_time"),
        ('"start_time": 0.0', '"start_time": "x"', "start_time is 'x'"),
        ('"end_time": 1.2', '"end_time": null', "end_time is None"),
        ('"end_time": 1.2', '"end_time": -1.0', "must end after its start"),
    ],
    "assembly101": [
        (None, "", "is empty"),
        (None, "\n\n", "is empty"),
        ("0\t36\tcut", "x\t36\tcut", "the start is 'x'"),
        ("0\t36\tcut", "0\ty\tcut", "the end is 'y'"),
        ("0\t36\tcut", "0\t36", "expected at least 3 columns, got 2"),
        ("0\t36\tcut", "0 36 cut", "the start is '0 36 cut'"),
        ("0\t36\tcut", "0\t36\t", "the label is empty"),
        ("0\t36\tcut", "36\t0\tcut", "must end after its start"),
        ("0\t36\tcut", "0\t0\tcut", "must end after its start"),
        ("0\t36\tcut", "-3\t36\tcut", "before the video does"),
        ("0\t36\tcut", "nan\t36\tcut", "nan is no time"),
        ("0\t36\tcut", '"0"x\t36\tcut', "text goes on after a quote"),
    ],
    "jigsaws": [
        (None, "", "is empty"),
        (None, " \r\n", "is empty"),
        ("1 36 G1", "x 36 G1", "the start is 'x'"),
        ("1 36 G1", "1 y G1", "the end is 'y'"),
        ("1 36 G1", "1 36", "expected at least 3 columns, got 2"),
        ("1 36 G1", "1,36,G1", "the start is|expected at least"),
        ("1 36 G1", "36 1 G1", "must end after its start"),
        ("1 36 G1", "0 36 G1", "before the video does"),
        ("1 36 G1", "inf 36 G1", "inf is no time"),
        ("1 36 G1", "1 nan G1", "nan is no time"),
        ("1 36 G1", "1 0 G1", "must end after its start"),
        ("1 36 G1", "G1 1 36", "the start is 'G1'"),
    ],
    "segments": [
        (None, "", "is empty"),
        (None, "clip,begin,end,step\n", "has no row of a segment"),
        ("clip", "movie", "no column 'clip'; the columns are movie, begin, end, step"),
        ("begin", "from", "no column 'begin'"),
        (",end", ",to", "no column 'end'"),
        (",step", ",label", "no column 'step'"),
        ("v1,0.0,1.2,cut", "v1,0.0", "expected at least 3 columns, got 2|at least 4"),
        ("v1,0.0,1.2,cut", "v1,zero,1.2,cut", "the start is 'zero'"),
        ("v1,0.0,1.2,cut", "v1,0.0,0.0,cut", "must end after its start"),
        ("v1,0.0,1.2,cut", "v1,-1,1.2,cut", "starts at -1 s, before the video"),
        ("v1,0.0,1.2,cut", ",0.0,1.2,cut", "the name of the video is empty"),
        ("v1,0.0,1.2,cut", 'v1,"0.0"s,1.2,cut', "text goes on after a quote"),
    ],
}
"""What to replace in a good file (all of it: None), by what, and the sentence."""


def read_all(layout: str, root: Path, data: bytes) -> None:
    config = write_sample(layout, root)
    file = root / SAMPLES[layout].name.format(video="v1")
    file.write_bytes(data)
    read_tracks(replace(config, path=str(file), folds=None))


def read_tracks(config: DatasetConfig) -> None:
    dataset = open_dataset(config)
    for video in dataset.videos:
        dataset.track(video)


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("layout", SAMPLES)
def test_malformed_file_is_one_sentence(tmp_path: Path, layout: str, number: int) -> None:
    assert len(CASES[layout]) == 12
    old, new, sentence = CASES[layout][number]
    good = SAMPLES[layout].text()
    if old is not None:
        assert old in good
    bad = new if old is None else good.replace(old, new, 1 if len(old) > 8 else -1)
    with pytest.raises(DataError, match=sentence) as caught:
        read_all(layout, tmp_path, bad.encode())
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value), "the file is named"


FOLDERS: dict[str, list[tuple[str | None, str, str]]] = {
    "activitynet": [
        *JSON,
        (None, '{"database": {}}', 'expected {"database"'),
        (None, '{"database": [1]}', 'expected {"database"'),
        ('"database"', '"data"', 'expected {"database"'),
        ('{"segment": [0.5, 1.0], "label": "stir", "label_id": 1}', "7", "annotation 0: expected"),
        ('"segment": [0.5, 1.0]', '"times": [0.5, 1.0]', "annotation 0: expected"),
        ('"segment": [0.5, 1.0]', '"segment": [0.5]', "annotation 0: expected"),
        ('"segment": [0.5, 1.0]', '"segment": ["a", 1.0]', "annotation 0: expected"),
        ('"segment": [0.5, 1.0]', '"segment": [NaN, 1.0]', "nan is no time|not valid JSON"),
        ('"segment": [0.5, 1.0]', '"segment": [1.0, 0.5]', "must end after its start"),
    ],
    "egoper": [
        *JSON,
        ('"tea"', '"milk"', "has no task 'tea'; it has milk, coffee"),
        ('"action2idx"', '"actions"', "has no action2idx or no segments"),
        ('"segments"', '"videos"', "has no action2idx or no segments"),
        ('"pour water": 5', '"pour water": "five"', "must have a number for each name"),
        ('"video_id"', '"id"', "expected a video_id and labels"),
        ('"time_stamp"', '"times"', "lacks time_stamp, action or action_type"),
        ('"action": [5, 0]', '"action": [5]', "2 time stamps but 1 actions"),
        ("[0.0, 2.0]", "[0.0]", "segment 0: expected two seconds"),
        ('"action": [5, 0]', '"action": [5, 9]', "an action 9 that action2idx lacks"),
    ],
}
"""The same of layouts with one file for all."""


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("layout", FOLDERS)
def test_malformed_file_of_all_labels_is_one_sentence(
    tmp_path: Path, layout: str, number: int
) -> None:
    assert len(FOLDERS[layout]) == 12
    config = WRITERS[layout](tmp_path)
    file = next(tmp_path.rglob("a*.json"))
    old, new, sentence = FOLDERS[layout][number]
    good = file.read_text()
    assert old is None or old in good
    file.write_text(new if old is None else good.replace(old, new))
    with pytest.raises(DataError, match=sentence) as caught:
        read_tracks(config)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value), "the file is named"


@pytest.mark.parametrize("layout", SAMPLES)
def test_file_in_another_encoding_is_one_sentence(tmp_path: Path, layout: str) -> None:
    data = SAMPLES[layout].text().encode().replace(b"cut", b"c\xfft").replace(b"G1", b"G\xff")
    if layout == "anvil":
        data = data.replace(b"ISO-8859-1", b"UTF-8")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_all(layout, tmp_path, data)


@pytest.mark.parametrize("layout", [n for n, s in SAMPLES.items() if "{video}" in s.name])
def test_broken_file_among_others_is_a_problem_and_the_others_are_read(
    tmp_path: Path, layout: str
) -> None:
    config = write_sample(layout, tmp_path)
    file = tmp_path / SAMPLES[layout].name.format(video="v1")
    file.write_text(SAMPLES[layout].text("v1")[:60] + " <")
    dataset = read_dataset(replace(config, folds=None))
    assert [video.id for video in dataset.videos] == ["v2"]
    assert str(file) in dataset.problems[0]


def test_other_files_beside_labels_are_left_alone(tmp_path: Path) -> None:
    config = write_sample("via", tmp_path)
    (tmp_path / "classes.json").write_text('["cut", "stir"]')
    assert open_dataset(config).problems == ()
    (tmp_path / "broken.json").write_text('{"project": ')
    assert "broken.json is not valid JSON" in read_dataset(config).problems[0]
