"""Files are known by their content; size and time only save reading them again."""

import os
import shutil
from pathlib import Path

import pytest

from csl_dist.data import content
from csl_dist.data.content import Contents, read_contents
from csl_dist.errors import DataError
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage

LARGE = content.SAMPLED_BYTES + 123


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "frames").mkdir(parents=True)
    for number in range(5):
        (folder / "frames" / f"{number}.png").write_bytes(bytes([number]) * 100)
    (folder / "small.npy").write_bytes(os.urandom(200_000))
    (folder / "large.mp4").write_bytes(os.urandom(LARGE))
    return folder


def digests(folder: Path, contents: Contents) -> tuple[str, str, str]:
    return (
        contents.of_folder(str(folder / "frames")),
        contents.of_file(str(folder / "small.npy")),
        contents.of_video(str(folder / "large.mp4")),
    )


def test_copy_of_a_dataset_has_the_same_contents(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    assert digests(folder, Contents()) == digests(tmp_path / "copy", Contents())


def test_touched_file_is_the_same(folder: Path) -> None:
    contents = Contents()
    before = digests(folder, contents)
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    assert digests(folder, contents) == before


@pytest.mark.parametrize(
    ("name", "place"),
    [("frames/2.png", 50), ("small.npy", 100_000), ("large.mp4", LARGE - 1), ("large.mp4", 0)],
)
def test_one_other_byte_is_noticed_although_the_size_stays(
    folder: Path, name: str, place: int
) -> None:
    contents = Contents()
    before = digests(folder, contents)
    path = folder / name
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert digests(folder, contents) != before


def test_noted_file_is_not_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = RunPaths(Storage(str(tmp_path / "run")))
    contents = Contents()
    before = digests(folder, contents)
    contents.put(paths)
    noted = read_contents(paths)
    monkeypatch.setattr(Contents, "_digest", None)
    assert digests(folder, noted) == before


@pytest.mark.parametrize("text", ["null", "[]", '{"a": 1}', "not JSON"])
def test_notes_that_are_damaged_are_made_again(tmp_path: Path, text: str) -> None:
    paths = RunPaths(Storage(str(tmp_path)))
    paths.root.put(RunPaths.SOURCES, text.encode())
    assert repr(read_contents(paths)) == "Contents(0 paths)"


def test_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"can't read .*none\.mp4: No such file"):
        Contents().of_video(str(tmp_path / "none.mp4"))
