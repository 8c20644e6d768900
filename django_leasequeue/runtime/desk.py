"""The desk: what a child has been given, and which of it runs in which slot."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from django_leasequeue.core.lease import Lease
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.messages import (
    Ack,
    Assignment,
    Cause,
    Holding,
    Interrupt,
    Progress,
    Trust,
)
from django_leasequeue.runtime.slots import Slot

__all__ = ["Desk", "Piece"]


class Piece:
    """An assignment on the desk, with the hold that its handler looks at."""

    def __init__(self, assignment: Assignment, start_by: float) -> None:
        self.assignment = assignment
        self.start_by = start_by
        self.hold = Hold(assignment.job.lease, assignment.job.seconds)
        #: Until when control trusts the lease, as far as it is known here.
        self.known_until = self.hold.trusted_until = assignment.trusted_until
        self.known_held = 0.0
        self.slot: Slot | None = None
        self.recalled = False
        self.told = False

    def ends_before(self, moment: float) -> bool:
        """Tell whether its handler runs, and the trust in its lease ends by then (ticks)."""
        running = self.slot is not None and not self.hold.completed
        return running and self.hold.until <= moment


class Desk:
    """Shared by a child's reader and its slots."""

    def __init__(self) -> None:
        self._waiting: deque[Piece] = deque()
        self._pieces: dict[Lease, Piece] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._owed: set[Lease] = set()
        self._acks: deque[Ack] = deque()

    def put(self, assignments: Sequence[Assignment], start_by: float) -> None:
        """Add assignments to the end of the line."""
        pieces = [Piece(assignment, start_by) for assignment in assignments]
        with self._changed:
            self._pieces.update((piece.assignment.job.lease, piece) for piece in pieces)
            self._waiting += pieces
            self._changed.notify(len(pieces))

    def take(self) -> Piece | Ack | None:
        """Return the next piece or word of an end, waiting for one.

        None once the desk is closed, empty, and no word of an end is owed to it.
        """
        with self._changed:
            while not (self._acks or self._waiting or (self._closed and not self._owed)):
                self._changed.wait()
            return self._pop()

    def take_waiting(self) -> Piece | Ack | None:
        """Return the next piece or word of an end if there is one now."""
        with self._changed:
            return self._pop()

    def _pop(self) -> Piece | Ack | None:
        if self._acks:
            return self._acks.popleft()
        return self._waiting.popleft() if self._waiting else None

    def await_ack(self, lease: Lease) -> None:
        """Note that control is about to be told of an end, and owes its word of it."""
        with self._changed:
            self._owed.add(lease)

    def acknowledge(self, acks: Sequence[Ack]) -> None:
        """Have a slot tell of ends that are in the database."""
        with self._changed:
            self._acks += acks
            self._owed -= {ack.lease for ack in acks}
            self._changed.notify_all()

    def begin(self, piece: Piece, slot: Slot) -> bool:
        """Note that the handler starts now; False when it was recalled, or it is too late."""
        with self._changed:
            if piece.recalled or ticks() >= piece.start_by:
                return False
            piece.slot = slot
            return True

    def drop(self, piece: Piece) -> None:
        """Take a piece that has ended off the desk."""
        with self._changed:
            self._pieces.pop(piece.assignment.job.lease, None)

    def recall(self) -> list[Piece]:
        """Take what has not started off the desk and return it.

        A piece just taken by a slot, whose handler has not begun, is given back by the slot.
        """
        with self._changed:
            back = list(self._waiting)
            self._waiting.clear()
            for piece in self._pieces.values():
                piece.recalled = piece.slot is None
            for piece in back:
                self._pieces.pop(piece.assignment.job.lease, None)
            return back

    def trust(self, message: Trust) -> None:
        """Note how long leases are trusted now."""
        with self._changed:
            for lease, until in message.until:
                if lease in self._pieces:
                    piece = self._pieces[lease]
                    piece.known_until = until
                    piece.hold.trusted_until = max(until, piece.hold.trusted_until)

    def news(self) -> list[Trust | Holding | Progress]:
        """Return what handlers have prolonged, and told of their progress, since the last call."""
        with self._changed:
            pieces = list(self._pieces.values())
            prolonged = [p for p in pieces if p.hold.trusted_until > p.known_until]
            for piece in prolonged:
                piece.known_until = piece.hold.trusted_until
            holding = [p for p in pieces if p.hold.held_until != p.known_held]
            for piece in holding:
                piece.known_held = piece.hold.held_until
        until = tuple((piece.hold.lease, piece.known_until) for piece in prolonged)
        found: list[Trust | Holding | Progress] = [Trust(until)] if until else []
        found += [Holding(piece.hold.lease, piece.known_held) for piece in holding]
        for hold in [piece.hold for piece in pieces]:
            told = hold.told  # another thread may leave the next one meanwhile
            if told is not None and told is not hold.shown:
                hold.shown = told
                found.append(Progress(hold.lease, told))
        return found

    def interrupt(self, message: Interrupt) -> None:
        """End an attempt, whether it runs or waits."""
        with self._changed:
            piece = self._pieces.get(message.lease)
        if piece is None:
            return
        if message.cause is Cause.LOST and piece.hold.until > max(
            piece.known_until, piece.known_held
        ):
            return  # the handler has prolonged it meanwhile, and word of that is on its way
        self._end(piece, message.cause)

    def hurries(self) -> bool:
        """Tell whether the trust in a lease under which a handler runs ends within a second."""
        soon = ticks() + 1.0
        with self._changed:
            return any(piece.ends_before(soon) for piece in self._pieces.values())

    def outlived(self) -> bool:
        """Tell whether a handler that was told to end runs on though its lease is over."""
        now = ticks()
        with self._changed:
            return any(piece.told and piece.ends_before(now) for piece in self._pieces.values())

    def end_untrusted(self) -> None:
        """End the attempts whose leases nobody has renewed in time: control may stand still.

        A twelfth of the lease before its trust ends, so that a handler has some time to end.
        """
        now = ticks()
        with self._changed:
            pieces = list(self._pieces.values())
        for piece in pieces:
            if not piece.told and piece.ends_before(now + piece.hold.seconds / 12):
                self._end(piece, Cause.LOST)

    def _end(self, piece: Piece, cause: Cause) -> None:
        piece.told = True
        if cause in (Cause.LOST, Cause.CANCELLED):
            piece.hold.lost = True
        with self._changed:
            slot = piece.slot
        if slot is not None:
            slot.interrupt(piece.assignment, cause)

    def close(self) -> None:
        """Let the slots end when nothing is left."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
