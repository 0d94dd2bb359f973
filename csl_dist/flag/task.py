"""What a worker of Ray does for the rule `edits`: findings of some videos.

A module of its own, because a worker that imports the whole stage waits for torch, too.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ray

from csl_dist.flag.edit_findings import VideoFindings
from csl_dist.flag.edit_rule import VideoLook, one_by_one
from csl_dist.types import Annotation


@ray.remote
def findings_of(shared: list[Any], audited: Sequence[Annotation]) -> list[VideoFindings]:
    """`shared` holds the reference to a VideoLook."""
    return one_by_one(_look_of(shared[0]), audited)


@lru_cache(maxsize=1)
def _look_of(reference: Any) -> VideoLook:
    look: VideoLook = ray.get(reference)
    return look
