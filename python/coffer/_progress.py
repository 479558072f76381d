"""Progress: a function, True for a bar of tqdm, or nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

Progress = Union[bool, Callable[[int, int], Any], None]


@contextmanager
def callback(progress: Progress, title: str) -> Iterator[Optional[Callable[[int, int], Any]]]:
    """Gives the function that the C part calls with (done, total), and closes the bar in the end."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    bar = tqdm(desc=title, unit="B", unit_scale=True)

    def step(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    try:
        yield step
    finally:
        bar.close()
