"""The embedded dataset, small enough for tests."""

from csl_dist.data.demo import DemoSpec
from csl_dist.data.placing import Amount
from csl_dist.types import Split

SMALL_DEMO = DemoSpec(
    num_videos={Split.TRAIN: 6, Split.VAL: 2, Split.AUDIT: 4},
    phase_frames=(6, 10),
    mislabelled=Amount(rate=0.1, lengths=(4, 6)),
    size=32,
)
