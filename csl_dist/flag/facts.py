"""What an audit says of each video as a whole, so that no list of videos reads their frames."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from csl_dist.types import Annotation, FloatArray

FACT_COLUMNS = ("video", "frames", "seconds", "worst", "mean")


def video_facts(
    annotations: Sequence[Annotation], scores: Mapping[str, FloatArray]
) -> pd.DataFrame:
    """A row a video: `worst` and `mean` are of the deciding score (T,) of its frames.

    NaN where no frame of a video has a score.
    """
    return pd.DataFrame(
        [(a.video, *frame_facts(a, scores[a.video])) for a in annotations],
        columns=list(FACT_COLUMNS),
    )


def frame_facts(annotation: Annotation, score_T: FloatArray) -> tuple[int, float, float, float]:
    """Frames, seconds, and the highest and the mean score of the frames that have one."""
    known_T = score_T[~np.isnan(score_T)].astype(np.float32)  # as scores are stored
    worst, mean = (known_T.max(), known_T.mean()) if len(known_T) else (np.nan, np.nan)
    return annotation.num_frames, float(annotation.times_T[-1]), float(worst), float(mean)
