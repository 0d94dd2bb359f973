from pathlib import Path

import numpy as np
import pytest

from csl_dist.config import DatasetConfig, ManifestConfig
from csl_dist.data.dataset import read_errors
from csl_dist.data.layouts import open_dataset
from csl_dist.data.media.timeline import sampled
from csl_dist.data.tracks import EntryTrack
from csl_dist.errors import DataError

HEADER = "id,source,labels,split,fps\n"


def write(folder: Path, rows: str, **files: str) -> DatasetConfig:
    (folder / "manifest.csv").write_text(rows)
    for name, text in files.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return ManifestConfig(path=str(folder))


def test_manifest_reads_labels_with_crlf_bom_and_unlabelled_lines(tmp_path: Path) -> None:
    config = write(
        tmp_path, HEADER + "v1,v1.mp4,v1.txt,train,2\n", v1="\ufeffcut up\r\n\r\nstir\r\n-\r\n\r\n"
    )
    dataset = open_dataset(config)
    assert dataset.classes == ("cut up", "stir")
    assert dataset.read_track(dataset.videos[0]).ids_N.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("id,source\nv,v.mp4\n", "column labels, fps is missing"),
        (HEADER, "lists no videos"),
        (HEADER + "v,v.mp4,v.txt,test,2\n", r"manifest.csv:2: split is 'test', expected train"),
        (HEADER + "v,v.mp4,v.txt,train,fast\n", r"manifest.csv:2: fps is 'fast'"),
        (
            HEADER + "v,a,v.txt,train,2\nv,b,v.txt,val,2\n",
            r"video 'v' is listed in the splits train and val",
        ),
    ],
)
def test_bad_manifest_is_refused_with_its_line(tmp_path: Path, rows: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        open_dataset(write(tmp_path, rows, v="a\n"))


def test_unknown_class_names_file_and_line(tmp_path: Path) -> None:
    config = write(tmp_path, HEADER + "v,v.mp4,v.txt,train,2\n", v="a\nb\n", classes="a\n")
    dataset = open_dataset(config)
    with pytest.raises(DataError, match=r"v\.txt:2: unknown class 'b'; the classes are a"):
        dataset.read_track(dataset.videos[0])


def test_labels_that_do_not_fit_the_frames_are_refused(tmp_path: Path) -> None:
    config = write(tmp_path, HEADER + "v,v.mp4,v.txt,train,2\n", v="a\n" * 20)
    dataset = open_dataset(config)
    timeline, _ = sampled(np.arange(12) / 2, None)
    with pytest.raises(DataError, match="video 'v': 20 labels but 12 frames at 2 fps"):
        dataset.labels(dataset.videos[0], timeline)


def test_track_is_sampled_at_the_nearest_entry() -> None:
    track = EntryTrack(np.arange(10), fps=25)
    assert track.at(np.array([0.0, 0.04, 0.081, 0.359])).tolist() == [0, 1, 2, 9]


def test_known_errors_of_the_wrong_form_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    path.write_text("video,kind,start,stop,true_label\nv,typo,1,2,\n")
    with pytest.raises(DataError, match="expected columns video, kind"):
        read_errors(str(path))
