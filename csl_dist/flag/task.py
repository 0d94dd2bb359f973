"""What a worker of Ray does for the rule `edits`: findings of some videos.

A module of its own, because a worker that imports the whole stage waits for torch, too.
"""

from collections.abc import Sequence
from typing import Any

from csl_dist.cluster.shared import shared_value
from csl_dist.flag.edit_findings import VideoFindings
from csl_dist.flag.edit_rule import one_by_one
from csl_dist.types import Annotation


def findings_of(shared: list[Any], audited: Sequence[Annotation]) -> list[VideoFindings]:
    """`shared` holds the reference to a VideoLook."""
    return one_by_one(shared_value(shared[0]), audited)
