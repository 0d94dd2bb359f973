"""Words of the report and of tables in a terminal, which are those of the review page."""

from collections.abc import Mapping
from typing import Any

from csl_dist.types import EditKind, Fix

KIND_WORDS = {
    "mislabel": "wrong name",
    "disorder": "order",
    "missing": "missing step",
    "insert": "step too many",
    "boundary": "boundary",
    "ambiguous": "ambiguous",
}

VIDEO_WORDS = {"worst": "worst frame", "mean": "mean frame"}
"""Headings of what is told of a video's frames; the others stay as they are."""
VIDEO_NOTE = (
    "worst frame and mean frame are the suspicion of single frames, to compare videos by; "
    "scores and probabilities of flags, which weigh whole spans, are on another scale"
)


def correction_words(correction: Mapping[Any, Any], *, by_edits: bool) -> str:
    """What became of a corrected span."""
    is_below = correction["below_threshold"]
    if not by_edits:
        return "below the threshold" if is_below else "above the threshold"
    if correction["was_flagged"]:
        return "no longer flagged" if is_below else "still flagged"
    return "not flagged" if is_below else "flagged now"


def fix_words(flag: Mapping[Any, Any]) -> str:
    """What a flag proposes, in a few words; empty where it only says where to look."""
    fix = Fix.parse(flag["fix"])
    if fix is None:
        return ""
    match fix.kind:
        case EditKind.RENAME:
            return f"rename to {flag['fix_label']}"
        case EditKind.DELETE:
            return f"part of {flag['fix_label']}"
        case EditKind.INSERT:
            return f"insert {flag['fix_label']}"
        case EditKind.BOUNDARY:
            seconds = flag["stop_seconds"] - flag["start_seconds"]
            return f"boundary {seconds:.1f} s {fix.direction}"
        case EditKind.SWAP:
            return f"swap: {flag['suggested']}, then {flag['label']}"
