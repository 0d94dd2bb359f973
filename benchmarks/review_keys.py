"""How fast the review page answers to keys with 1,000 videos and 5,000 flags, in Chromium.

.venv/bin/python benchmarks/review_keys.py [--videos 1000] [--flags 5000] [--repeats 20]
    [--root DIR] [--json]

Every video has its own trajectories and scores; their files are one. For each key it tells the
milliseconds, median and slowest, from the key until the page shows what the key is for: another
span, the decision, the cursor, the edit; one key after the other has had its effect, but for
`skimming`. `drawn` is until the curves of the next span stand there too. The service runs in this
process, without Ray. `--root` keeps the run for the next time.
"""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from figures import add_repeats, parser_of, positive, print_figures

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
import builder
import made_run
from review_page import Reviewer, put_flags, read_flags, serving

import csl_dist
from csl_dist.config import RunConfig
from csl_dist.pipeline import put_run
from csl_dist.training.inputs import open_inputs

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAUSE_MS = 700
PRESS = """async ([key, shiftKey, selector, what, before]) => {
  const value = () => {
    const node = document.querySelector(selector);
    if (what === "text") return node.textContent;
    return what === "hidden" ? String(node.hidden) : node.dataset[what];
  };
  const start = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
  while (value() === before) {
    if (performance.now() - start > 5000) return null;
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - start;
}"""


def write_run(folder: Path, num_videos: int, num_flags: int) -> str:
    """A run with so many audited videos; its models and flags are made up."""
    names = [f"op{number:04d}" for number in range(num_videos)]
    splits = {"v0": "train", "v1": "val", **dict.fromkeys(names, "audit")}
    num_pictures = made_run.NUM_FRAMES * made_run.SOURCE_FPS // made_run.FPS
    pictures = builder.grey_pictures(t * 255 // num_pictures for t in range(num_pictures))
    builder.write_video(folder / "all.mp4", pictures, fps=made_run.SOURCE_FPS)
    names_T = [made_run.CLASSES[label] for label in made_run.TRUE_LABELS]
    videos = []
    for video, split in splits.items():
        (folder / f"{video}.mp4").hardlink_to(folder / "all.mp4")
        videos.append(
            builder.MadeVideo(id=video, split=split, names_T=names_T, source=f"{video}.mp4")
        )
    builder.write_manifest(folder, videos, fps=made_run.FPS, classes=made_run.CLASSES)
    config: RunConfig = made_run.config_of(folder)
    scorers = {"transformer": config.scorers["transformer"]}
    dataset = replace(config.dataset, truth=None)
    inputs = open_inputs(replace(config, scorers=scorers, dataset=dataset))
    put_run(inputs)
    builder.write_features(inputs)
    builder.write_checkpoints(
        inputs,
        "transformer",
        made_run.NUM_EPOCHS,
        class_weights=made_run.CLASS_WEIGHTS.tolist(),
        with_weights=False,
    )
    logp_ETC = made_run.log_probabilities("v2", "transformer")
    builder.write_trajectories(
        inputs,
        "transformer",
        dict.fromkeys(["v1", *names], made_run.NUM_FRAMES),
        lambda epoch: np.tile(logp_ETC[epoch - 1], (num_videos + 1, 1)),
        num_epochs=made_run.NUM_EPOCHS,
    )
    builder.finish_run(inputs)
    root = inputs.run.config.root
    _put_many_flags(root, names, num_flags)
    return root


def _put_many_flags(root: str, names: list[str], num_flags: int) -> None:
    """Flags of every kind, the likeliest first, spread over all videos."""
    paths = csl_dist.open_audit(root).paths
    rng = np.random.default_rng(0)
    columns = read_flags(paths).columns
    rows = []
    for rank in range(1, num_flags + 1):
        start = int(rng.integers(0, 26)) * 10
        kind, fix = (
            ("mislabel", f"rename {start} {start + 40}"),
            ("insert", f"delete {start} {start + 40}"),
            ("missing", f"insert {start} {start + 40}"),
        )[rank % 3]
        label, other = made_run.CLASSES[min(2, start // 100)], made_run.CLASSES[rank % 3]
        rows.append(
            {
                "rank": rank,
                "video": names[int(rng.integers(len(names)))],
                "start": start,
                "stop": start + 40,
                "start_seconds": start / 10,
                "stop_seconds": start / 10 + 4,
                "score": 4 - 6 * rank / num_flags,
                "kind": kind,
                "kind_confidence": 0.8,
                "label": label,
                "suggested": other,
                "suggested_probability": 0.8,
                "why": f"models see {other} in 6 of 6 checkpoints",
                "probability": 1 - 0.9 * rank / num_flags,
                "fix": fix,
                "fix_label": other,
                "fix_start": start,
                "fix_stop": start + 40,
                "list": "steps",
            }
        )
    table = pd.DataFrame(rows).drop_duplicates(["video", "start"]).reset_index(drop=True)
    put_flags(paths, table.assign(rank=np.arange(1, len(table) + 1))[columns])


class Timer:
    """Presses keys and notes how long the page takes."""

    def __init__(self, page: Any):
        self._page = page
        self.milliseconds: dict[str, list[float]] = {}

    def press(
        self, name: str, key: str, selector: str, what: str = "text", shift: bool = False
    ) -> None:
        read = {
            "text": f"document.querySelector({selector!r}).textContent",
            "hidden": f"String(document.querySelector({selector!r}).hidden)",
        }.get(what, f"document.querySelector({selector!r}).dataset[{what!r}]")
        before = self._page.evaluate(read)
        taken = self._page.evaluate(PRESS, [key, shift, selector, what, before])
        # A span may have no boundary after it, or one that can't move.
        if taken is not None:
            self.milliseconds.setdefault(name, []).append(taken)

    def settle(self) -> None:
        """As long as somebody takes at least to look, so that keys are timed one by one."""
        self._page.wait_for_timeout(PAUSE_MS)


def bench_page(root: str, repeats: int) -> dict[str, dict[str, float]]:
    from playwright.sync_api import sync_playwright

    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as driver, serving(root) as address:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic"]
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        page = Reviewer(browser, address, "Ada").page
        timer = Timer(page)
        for number in range(repeats + 1):
            if number == 1:
                timer.milliseconds.clear()  # the first time, caches are cold
            _one_round(timer)
        timer.settle()
        for _ in range(repeats):
            timer.press("next, drawn", "j", "body", "drawn")
            timer.settle()
        for _ in range(repeats):  # one right after the other, as who skims does
            timer.press("next, skimming", "j", "#span-title", "rank")
        browser.close()
    return {
        name: {
            "median_ms": round(float(np.median(taken)), 1),
            "slowest_ms": round(float(np.max(taken)), 1),
        }
        for name, taken in timer.milliseconds.items()
    }


def _one_round(timer: Timer) -> None:
    steps = [
        ("next (J)", "j", "#span-title", "rank", False),
        ("back (K)", "k", "#span-title", "rank", False),
        ("next open (Enter)", "Enter", "#span-title", "rank", False),
        ("frame (right)", "ArrowRight", "#clock", "text", False),
        ("second (Shift right)", "ArrowRight", "#clock", "text", True),
        ("boundary (PgDn)", "PageDown", "#clock", "text", False),
        ("zoom (V)", "v", "#zoom-text", "text", False),
        ("take edge (E)", "e", "#draft-edits", "text", False),
        ("move edge (>)", ">", "#draft-edits", "text", False),
        ("discard (Esc)", "Escape", "#draft", "hidden", False),
        ("label is right (C)", "c", "#history", "text", False),
        ("undo (Z)", "z", "#history", "text", False),
        ("accept (A)", "a", "#history", "text", False),
        ("undo, saved", "z", "#toast", "text", False),
        ("right, saved", "c", "#toast", "text", False),
        ("right, go on (Shift C)", "c", "#span-title", "rank", True),
    ]
    for name, key, selector, what, shift in steps:
        timer.settle()
        timer.press(name, key, selector, what, shift)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=positive, default=1000)
    parser.add_argument("--flags", type=positive, default=5000)
    parser.add_argument("--root", type=Path, help="where the run is, or is to be written")
    add_repeats(parser, 20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.root or Path(temporary)
        root = folder / "run"
        if not root.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_run(folder, given.videos, given.flags)
        print_figures(bench_page(str(root), given.repeats), as_json=given.json)


if __name__ == "__main__":
    main()
