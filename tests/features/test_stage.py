"""Extraction that loses an encoder, a decoder and its driver ends with the same store."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from processes import descendants, kill_below

from csl_dist.config import load_config
from csl_dist.features.store import FeatureStore
from csl_dist.training.inputs import open_inputs

pytestmark = pytest.mark.xdist_group("ray")

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main()"]
ENCODER, DECODER = "MapBatches(_EncodeChunks)", "Map(_DecodeChunks)"


def write_config(folder: Path, dataset: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "c.yaml"
    path.write_text(
        f"root: {folder}/run\ndataset: {{path: {dataset}}}\n"
        "features: {weights: random, size: 96, chunk_frames: 4, batch_frames: 4}\n"
    )
    return path


def arrays_of(folder: Path) -> dict[str, bytes]:
    """Every file of every array, without the records."""
    root = folder / "run/features.zarr"
    files = [p for p in root.rglob("*") if p.is_file() and "records" not in p.parts]
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and not condition():
        time.sleep(0.02)
    assert process.poll() is None, "extraction ended before it could be disturbed"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_encoder_decoder_and_driver_leave_the_same_bytes(
    small_dataset: Path, tmp_path: Path
) -> None:
    undisturbed = write_config(tmp_path / "undisturbed", small_dataset)
    subprocess.run([*COMMAND, "extract", undisturbed], check=True, stdout=subprocess.DEVNULL)
    expected = arrays_of(tmp_path / "undisturbed")
    assert sum("/c/" in name for name in expected) > 100

    path = write_config(tmp_path / "killed", small_dataset)
    root = tmp_path / "killed/run"

    def num_written() -> int:
        return len(list(root.glob("features.zarr/*/records/*/**/*.json")))

    process = subprocess.Popen([*COMMAND, "extract", str(path)], stdout=subprocess.DEVNULL)
    wait_until(lambda: num_written() >= 3, process)
    assert kill_below(process.pid, ENCODER)
    wait_until(lambda: any(DECODER in name for name in descendants(process.pid).values()), process)
    assert kill_below(process.pid, DECODER)
    before = num_written()
    wait_until(lambda: num_written() >= before + 5, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    half_done = len(arrays_of(tmp_path / "killed"))
    assert half_done < len(expected)

    subprocess.run([*COMMAND, "extract", path], check=True, stdout=subprocess.DEVNULL)
    assert arrays_of(tmp_path / "killed") == expected


@pytest.mark.timeout(300)
def test_broken_frames_are_refused_or_repeated_and_told(
    small_dataset: Path, tmp_path: Path
) -> None:
    """Frames 5 to 8 of a folder are broken; chunks hold four frames, so one starts among them."""
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    write_pictures(dataset / "frames", broken=(5, 6, 7, 8))
    (dataset / "labels.txt").write_text("step\n" * 12)
    (dataset / "manifest.csv").write_text(
        "id,source,labels,split,fps\nv,frames,labels.txt,train,10\n"
    )
    path = write_config(tmp_path / "broken", dataset / "manifest.csv")
    refused = subprocess.run(
        [*COMMAND, "extract", path], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "000005.png, at 0.50 s, can't be read" in refused.stderr
    assert "features.on_bad_frame: repeat_last" in refused.stderr
    assert "Traceback" not in refused.stderr
    beside = "features.beside=[{encoder: timm/test_vit, weights: random, size: 32}]"
    settings = ["--set", "features.on_bad_frame=repeat_last", "--set", beside]
    repeated = subprocess.run(
        [*COMMAND, "extract", path, *settings],
        capture_output=True,
        text=True,
        check=False,
    )
    assert repeated.returncode == 0, repeated.stderr
    assert repeated.stdout.count("4 frames can't be decoded, the first at 0.50 s") == 1
    store = open_inputs(load_config(path)).features.base
    assert isinstance(store, FeatureStore)
    features = store.read("v")
    assert np.array_equal(features[5:9], np.repeat(features[[4]], 4, axis=0))
    assert not np.array_equal(features[9], features[4])
    assert store.stored(store.entry("v")).repeated == [0.5, 0.6, 0.7, 0.8]
    both = open_inputs(load_config(path, [beside])).features
    assert both.base.missing() == []
    second = both.sets[1].store
    assert both.base.width() == 512 + second.width()
    assert np.array_equal(both.base.read("v", slice(3, 7))[:, :512], features[3:7])
    assert np.array_equal(both.base.read("v")[:, 512:], second.read("v"))
    assert both.base.fingerprint("v") not in (store.fingerprint("v"), second.fingerprint("v"))


def write_pictures(folder: Path, *, broken: tuple[int, ...]) -> None:
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    for n in range(12):
        pixels = rng.integers(0, 256, size=(96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{n:06d}.png")
    for n in broken:
        (folder / f"{n:06d}.png").write_bytes(b"broken")
