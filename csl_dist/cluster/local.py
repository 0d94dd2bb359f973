"""Whether Ray is this command's own; told without importing Ray."""

import os


def is_local() -> bool:
    """Whether Ray runs on this machine alone, and ends with the command."""
    return "RAY_ADDRESS" not in os.environ and "RAY_JOB_ID" not in os.environ
