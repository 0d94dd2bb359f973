"""A disk that is full or can't be written to: one sentence, nothing half-written, goes on after."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import made_run
import numpy as np
import pytest
from rich.console import Console
from small_disk import small_disk
from stored import different, stored
from typer.testing import CliRunner

from csl_dist.cli.app import app
from csl_dist.errors import CslError, StorageError
from csl_dist.pipeline import open_stage
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array, open_array


@contextmanager
def files_limited_to(num_bytes: int) -> Iterator[None]:
    """No file of this process gets larger, as on a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_key_that_finds_no_room_is_not_there_and_is_written_later(storage: Storage) -> None:
    storage.put("kept", b"1" * 100)
    with files_limited_to(1000), pytest.raises(StorageError, match="can't write"):
        storage.put("large", b"2" * 5000)
    assert storage.list_keys() == ["kept"]
    storage.put("large", b"2" * 5000)
    assert storage.read("large") == b"2" * 5000


def test_key_that_finds_no_room_keeps_what_it_held(storage: Storage) -> None:
    storage.put("key", b"1" * 100)
    with files_limited_to(1000), suppress(StorageError):
        storage.put("key", b"2" * 5000)
    assert storage.read("key") == b"1" * 100


def test_chunk_that_finds_no_room_is_an_error_and_is_written_later(storage: Storage) -> None:
    array = create_array(storage, "a", shape=(4096,), chunks=(4096,), dtype="float64")
    with files_limited_to(3000), pytest.raises(StorageError, match="can't write"):
        array[:] = np.random.default_rng(0).random(4096)
    array[:] = np.ones(4096)
    assert open_array(storage, "a")[:].sum() == 4096


def test_root_that_is_a_file_is_refused_and_stays(made_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("mine")
    config = replace(made_run.config_of(made_folder), root=str(tmp_path / "root"))
    with (
        pytest.raises(StorageError, match="can't"),
        open_stage(config, "test", console=Console(quiet=True)),
    ):
        pytest.fail("it must not open")
    assert (tmp_path / "root").read_text() == "mine"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_root_of_somebody_else_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """As for a file system that is mounted read-only."""
    (tmp_path / "root").mkdir(mode=0o555)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    script = (
        "import os; os.setuid(65534)\n"
        "from csl_dist.storage.url import Storage\n"
        "from csl_dist.errors import StorageError\n"
        f"try: Storage({str(tmp_path / 'root')!r}).put('a', b'1')\n"
        "except StorageError as error: print(str(error))\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if "Permission denied: '/root" in said.stderr or "No module named" in said.stderr:
        pytest.skip("the packages can't be read by another user here")
    assert "can't write" in said.stdout, said.stderr
    assert said.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [["audits", "rm", "ROOT", "1"], ["relabel", "ROOT", "x"], ["clean", "ROOT", "--remove"]],
)
def test_root_of_another_format_is_never_written_to(made_root: str, command: list[str]) -> None:
    storage = Storage(made_root)
    content = storage.read_json("run.json", dict)
    storage.put_json("run.json", content | {"format_version": 3})
    before = sorted(storage.list_sizes())
    with pytest.raises(StorageError, match="has format version 3"):
        CliRunner().invoke(
            app, [made_root if c == "ROOT" else c for c in command], catch_exceptions=False
        )
    assert sorted(storage.list_sizes()) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("command", ["audit", "run"])
def test_root_that_takes_no_files_is_told_before_anything_else(
    made_folder: Path, tmp_path: Path, command: str
) -> None:
    """In a process of its own: where it hangs, nothing else ends it."""
    config = tmp_path / "csl.yaml"
    config.write_text(f"root: /proc/self\ndataset: {{path: {made_folder}}}\nscorers: {{a: {{}}}}\n")
    words = [sys.executable, "-m", "csl_dist.cli", command, str(config)]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert said.returncode == 2
    assert said.stderr.startswith("error: can't write to /proc/self: no file can be made")
    assert said.stderr.count("\n") == 1


@pytest.mark.parametrize("link", ["audits", "audits/0001"])
def test_audit_behind_a_link_is_not_removed(made_root: str, tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(Path(made_root) / link, elsewhere)
    (Path(made_root) / link).symlink_to(elsewhere)
    before = stored(elsewhere)
    with pytest.raises(StorageError, match="which is outside"):
        CliRunner().invoke(app, ["audits", "rm", made_root, "1"], catch_exceptions=False)
    assert different(stored(elsewhere), before) == []


def test_folder_that_is_no_audit_is_left_alone(made_root: str) -> None:
    shutil.copytree(Path(made_root) / "audits/0001", Path(made_root) / "audits/copy of 1")
    listed = CliRunner().invoke(app, ["audits", made_root], catch_exceptions=False)
    assert listed.exit_code == 0


COMMANDS = {
    "relabel": ["relabel", "ROOT", "FIXED"],
    "report": ["report", "ROOT"],
    "csv": ["export", "ROOT", "--format", "csv", "--out", "DISK/flags.csv"],
    "hdf5": ["export", "ROOT", "--format", "hdf5", "--out", "DISK/all.h5"],
    "certify": ["certify", "ROOT"],
    "audits rm": ["audits", "rm", "ROOT", "1"],
    "verify": ["verify", "ROOT"],
    "status": ["status", "ROOT"],
    "query": ["query", "ROOT", "flags"],
}
"""Commands on a finished run that need no Ray."""
WRITING = ("relabel", "report", "csv", "hdf5", "certify", "audits rm")


def invoked(command: str, disk: Path) -> BaseException | None:
    """How a command on the run on a disk ends: None where all went well."""
    places = {"ROOT": str(disk / "run"), "FIXED": str(disk.parent / "fixed")}
    words = [places.get(word, word.replace("DISK", str(disk))) for word in COMMANDS[command]]
    result = CliRunner().invoke(app, words)
    return None if result.exit_code == 0 else result.exception


def write_fixed(folder: Path) -> None:
    folder.mkdir()
    (folder / "v2.txt").write_text(made_run.label_text(made_run.TRUE_LABELS))


@pytest.mark.parametrize("command", WRITING)
def test_full_disk_is_a_sentence_and_the_command_goes_on_when_there_is_room(
    made_folder: Path, tmp_path: Path, command: str
) -> None:
    write_fixed(tmp_path / "fixed")
    with small_disk(tmp_path / "disk", 24) as disk:
        root = disk.folder / "run"
        shutil.copytree(made_folder / "run", root)
        assert invoked(command, disk.folder) is None
        expected = stored(disk.folder)
        num_stopped = 0
        for left in (0, 16384):
            for path in disk.folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copytree(made_folder / "run", root)
            disk.fill(left=left)
            ended = invoked(command, disk.folder)
            assert ended is None or isinstance(ended, CslError), ended
            assert "\n" not in str(ended)
            num_stopped += ended is not None
            disk.make_room()
            if ended is not None:
                assert invoked(command, disk.folder) is None
            # A database is never the same bytes twice: it holds when it was made.
            assert set(different(stored(disk.folder), expected)) <= {"run/reviews.db"}
        assert num_stopped or command == "audits rm", "nothing was ever too full"


@pytest.mark.parametrize("command", COMMANDS)
def test_read_only_root_can_be_read_and_is_a_sentence_for_what_writes(
    made_folder: Path, tmp_path: Path, command: str
) -> None:
    write_fixed(tmp_path / "fixed")
    with small_disk(tmp_path / "disk", 24) as disk:
        shutil.copytree(made_folder / "run", disk.folder / "run")
        before = stored(disk.folder)
        disk.mount("ro")
        ended = invoked(command, disk.folder)
        if command in WRITING:
            assert isinstance(ended, CslError), ended
            assert "\n" not in str(ended)
        else:
            assert ended is None
        assert different(stored(disk.folder), before) == []
        disk.mount("rw")
        assert invoked(command, disk.folder) is None
