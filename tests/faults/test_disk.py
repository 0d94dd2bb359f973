"""A disk that is full or can't be written to: one sentence, nothing half-written, goes on after."""

import os
import resource
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
from typer.testing import CliRunner

from csl_dist.cli.app import app
from csl_dist.errors import StorageError
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


@pytest.mark.parametrize("command", [["audits", "rm", "ROOT", "1"], ["relabel", "ROOT", "x"]])
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
