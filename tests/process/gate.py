"""A gate: words that a test and a handler in another process say to each other, as files."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import wait_until


class Gate:
    """A folder in which each word that was said is a file."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(exist_ok=True)

    def __str__(self) -> str:
        return str(self._folder)

    def say(self, word: str) -> None:
        (self._folder / word).touch()

    def said(self, word: str) -> bool:
        return (self._folder / word).exists()

    def numbers(self, word: str) -> list[int]:
        """Return n of each "word-n" that was said, the earliest first."""
        said = sorted(self._folder.glob(f"{word}-*"), key=lambda file: file.stat().st_mtime_ns)
        return [int(file.name.rpartition("-")[2]) for file in said]

    def wait_number(self, word: str) -> int:
        """Return n of the first "word-n" that is said."""
        return wait_until(lambda: self.numbers(word), timeout=30, message=f"no {word!r}")[0]

    def wait(self, word: str, timeout: float = 30) -> None:
        wait_until(lambda: self.said(word), timeout=timeout, message=f"nobody said {word!r}")
