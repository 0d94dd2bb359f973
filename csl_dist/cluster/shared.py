"""What many tasks of Ray need, read once by each worker."""

from functools import lru_cache
from typing import Any

import ray


@lru_cache(maxsize=1)
def shared_value(reference: Any) -> Any:
    """What `ray.put` gave a reference to; a worker keeps the last one."""
    return ray.get(reference)
