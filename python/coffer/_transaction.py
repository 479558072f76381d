"""What is written appears complete, or not at all."""

from __future__ import annotations

from typing import TypeVar

_Self = TypeVar("_Self", bound="Transaction")


class Transaction:
    """The end of a `with` block commits; an exception inside it discards."""

    def commit(self) -> None:
        """Makes the file complete, durable and visible."""
        raise NotImplementedError

    def discard(self) -> None:
        """Leaves nothing behind."""
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()
